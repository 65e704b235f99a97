import re

from forestprune import demo


def test_the_demo_shows_sizes_and_errors(capsys):
    demo.main(n_trees=3)
    lines = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in lines]
    assert [row[0] for row in rows] == ["full forest", *(f"depth {d}" for d in demo.DEPTHS)]
    nodes = [int(row[2].replace(",", "")) for row in rows]
    assert nodes == sorted(nodes, reverse=True)
    assert nodes[-1] == 1
    training = [float(row[4]) for row in rows]
    assert training == sorted(training)
    assert all(re.fullmatch(r"\d\.\d{4}", row[5]) for row in rows)
