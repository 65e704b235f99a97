import re

from forestprune import demo


def tables(text):
    lines = [line for line in text.splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in lines]
    starts = [i for i, row in enumerate(rows) if row[0] == "full model"]
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def test_the_demo_shows_the_trade_off_and_writes_a_report(capsys, tmp_path):
    demo.main(n_trees=10, folder=tmp_path / "demo")
    text = capsys.readouterr().out
    found = tables(text)
    assert len(found) == 2
    for rows in found:
        assert [row[0] for row in rows][3:] == [f"max {n:,} nodes" for n in demo.BUDGETS]
        nodes = [int(row[1].replace(",", "")) for row in rows]
        for count, budget in zip(nodes[3:], demo.BUDGETS, strict=True):
            assert 0 < count <= budget
        assert max(nodes) == nodes[0]
        sizes = [float(row[4].replace(",", "")) for row in rows]
        assert sizes[0] == max(sizes)
        assert all(re.fullmatch(r"0\.\d{4}", row[5]) for row in rows)
        assert all(float(row[6]) > 0 for row in rows)
    assert text.splitlines()[-1].endswith(str(tmp_path / "demo" / "report.html"))
    report = (tmp_path / "demo" / "report.html").read_text("utf-8")
    full, picked = (int(row[1].replace(",", "")) for row in found[1][:2])
    assert f"{full:,} → {picked:,}" in report
    assert "alcohol" in report
    assert (tmp_path / "demo" / "path.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_said_word_for_word(capsys, tmp_path, monkeypatch):
    def refuse():
        raise ImportError('Reports need plotly: pip install "forestprune[report]"')

    def refuse_too(*_):
        raise ImportError('Plots need matplotlib: pip install "forestprune[plot]"')

    monkeypatch.setattr("forestprune.demo.check_installed", refuse)
    monkeypatch.setattr("forestprune.demo._save_figure", refuse_too)
    demo.main(n_trees=3, folder=tmp_path / "demo")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        'There is no figure: Plots need matplotlib: pip install "forestprune[plot]"',
        'There is no report: Reports need plotly: pip install "forestprune[report]"',
    ]
    assert not (tmp_path / "demo").exists()


def test_names_of_folders_are_not_markup(capsys, tmp_path):
    folder = tmp_path / "[bold]" / ":wine_glass:"
    demo.main(n_trees=3, folder=folder)
    figure, report = capsys.readouterr().out.splitlines()[-2:]
    assert figure.endswith(f": {folder / 'path.png'}")
    assert report.endswith(f": {folder / 'report.html'}")
