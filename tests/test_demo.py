import re

from forestprune import demo


def test_the_demo_shows_the_trade_off(capsys):
    demo.main(n_trees=10)
    lines = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in lines]
    assert [row[0] for row in rows][:1] == ["full forest"]
    assert [row[0] for row in rows][3:] == [f"{n:,} nodes" for n in demo.BUDGETS]
    nodes = [int(row[1].replace(",", "")) for row in rows]
    for count, budget in zip(nodes[3:], demo.BUDGETS, strict=True):
        assert 0 < count <= budget
    assert max(nodes) == nodes[0]
    sizes = [float(row[4].replace(",", "")) for row in rows]
    assert sizes[0] == max(sizes)
    assert all(re.fullmatch(r"0\.\d{4}", row[5]) for row in rows)
    assert all(float(row[6]) > 0 for row in rows)
