"use strict";
// The models of the path: the chart, the panel beside it, the table below; and the depths of trees.
(() => {
  const { path, depths } = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const count = (n) => n.toLocaleString("en-US");
  const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
  const size = (p) => (p.nodes ? `${counted(p.nodes, "node")}, ${counted(p.trees, "tree")}` : "a constant: no nodes");
  const fixed = (x, places) => x.toFixed(places).replace("-", "−");

  function digits(x) {
    if (x === null) return "–";
    const text = Math.abs(x) >= 10_000 ? count(Math.round(x)) : Number(x.toPrecision(4)).toString();
    return text.replace("-", "−");
  }

  const named = new Map(path.marks.map((mark) => [mark.name, mark.place]));
  const nameOf = (place) => path.marks.filter((mark) => mark.place === place).map((mark) => mark.name).join(", ");
  const line = path.points.map((_, i) => i).filter((i) => path.points[i].frontier)
    .sort((a, b) => path.points[a].nodes - path.points[b].nodes);
  const kept = [...new Set(named.values())];
  let shown = named.get("this model");
  let putRing = null;

  // How much larger the root of the mean squared error is. Without that, what is not explained of
  // the variance tells as well: both models are over the same.
  const squares = path.score === "R²";
  function change(point) {
    if (point === path.full) return "–";
    const ratio = path.full.rmse === null ? Math.sqrt(point.error / path.full.error) : point.rmse / path.full.rmse;
    const percent = 100 * (ratio - 1);
    return `${percent >= 0 ? "+" : ""}${fixed(percent, 1)} %`;
  }

  function share(point) {
    if (!path.full.nodes) return "–";
    const percent = (100 * point.nodes) / path.full.nodes;
    return `${percent.toFixed(percent === 0 || percent >= 99.95 ? 0 : percent < 0.95 ? 2 : 1)} %`;
  }

  // What has splits that the full model does not have is not only pruned.
  const splits = (p) => (p.new_splits ? `${count(p.new_splits)} of ${count(p.splits)}` : "none");
  const resplit = (p) => (p.new_splits ? `\nnew splits: ${splits(p)}` : "");
  const where = path.figures_further ? ", further rows" : "";
  const facts = [
    ["nodes", (p) => count(p.nodes)], ["of the full model's nodes", share],
    ["trees", (p) => count(p.trees)], ["deepest tree", (p) => count(p.depth)],
    ...(path.resplit ? [["new splits", splits]] : []),
    [`error, ${path.error_name}`, (p) => digits(p.error)],
    ...(path.held_out ? [["± standard error", (p) => digits(p.standard_error ?? null)]] : []),
    ...path.figures.map(({ key, label }) => [`${label}${where}`, (p) => digits(p[key])]),
    ...((path.full.rmse ?? (squares && path.full.error)) ? [["RMSE, against full", change]] : []),
  ];

  // The first figure, in brief.
  const said = (p) => path.figures.slice(0, 1).map(({ key, label }) => `\n${label} ${digits(p[key])}${where}`).join("");

  function element(tag, text, parent, role) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (role) made.setAttribute("role", role);
    parent.append(made);
    return made;
  }

  function drawPath() {
    const rows = path.held_out ? "on rows held out" : "on the rows it was pruned with";
    putRing = charts.drawPath($("path-chart"), {
      ...path, line, mine: named.get("this model"), pick: show,
      title: `error ${rows}, ${path.error_name}${path.own ? " against the full model" : ""}`,
      told: (p) => `${size(p)}\nerror ${digits(p.error)}${said(p)}${resplit(p)}`,
    });
    putRing(shown);
  }

  function drawDepths() {
    const gone = depths.after[0] > 0 && !depths.before[0];
    const label = (i) => (i === 0 && gone ? "gone" : `${i}`);
    const told = (i) => `${i === 0 && gone ? "gone" : `depth ${i}`}: ${counted(depths.before[i], "tree")} before, ${count(depths.after[i])} after`;
    const every = depths.before.map((_, i) => i);
    const some = every.filter((i) => depths.before[i] || depths.after[i]);
    $("depth-chart").setAttribute("aria-label", `Depths of trees. ${some.map(told).join("; ")}.`);
    charts.drawColumns($("depth-chart"), {
      labels: every.map(label), titles: { x: "depth", y: "trees" }, told,
      series: [{ name: "before", values: depths.before }, { name: "after", values: depths.after }],
    });
  }

  function fillPanel() {
    const point = path.points[shown];
    $("panel-name").textContent = nameOf(shown) || size(point);
    const list = $("panel-facts");
    list.replaceChildren();
    const own = [["alpha, the price of size", (p) => digits(p.alpha)], ...(point.shrinkage === null ? [] : [["shrinkage, in rows", (p) => digits(p.shrinkage)]])];
    for (const [name, value] of [...facts, ...own]) {
      element("dt", name, list);
      element("dd", value(point), list);
    }
    // What a command finds within a budget may be another model as large as this one.
    $("panel-how").textContent = path.by_command ? "To get one of this size:" : "To get it:";
    $("panel-call").replaceChildren();
    const without = point.nodes ? "Nothing to do: this is the model as it was." : "A constant: no tree is left.";
    const words = (point.call ?? without).split(" ");
    for (const [i, word] of words.entries()) {
      if (i) $("panel-call").append(" ");
      element("span", word, $("panel-call")); // so that lines do not end within --max-nodes
    }
    $("smaller").disabled = neighbour(-1) === null;
    $("larger").disabled = neighbour(1) === null;
    $("keep").disabled = kept.includes(shown);
  }

  function neighbour(step) {
    const nodes = path.points[shown].nodes;
    const others = line.filter((i) => (step < 0 ? path.points[i].nodes < nodes : path.points[i].nodes > nodes));
    if (!others.length) return null;
    return step < 0 ? others[others.length - 1] : others[0];
  }

  function addRow(body, name, point, tint, place) {
    const row = element("tr", "", body, "row");
    const first = element("th", "", row, "rowheader");
    first.scope = "row";
    const dot = element("span", "", first);
    dot.className = "swatch";
    dot.style.background = tint;
    const words = element(place === null ? "span" : "button", name, first);
    for (const [label, value] of facts) {
      element("td", value(point), row, "cell").dataset.label = label; // for narrow screens
    }
    const last = element("td", "", row, "cell");
    last.className = "remove";
    if (place === null) return;
    words.type = "button";
    words.title = "show this model in the chart and the panel";
    row.addEventListener("click", () => show(place));
    if (place === shown) row.className = "shown";
    if (!nameOf(place)) {
      const button = element("button", "remove", last);
      button.type = "button";
      button.addEventListener("click", (event) => {
        event.stopPropagation();
        kept.splice(kept.indexOf(place), 1);
        update();
      });
    }
  }

  function fillTable() {
    const body = document.querySelector("#comparison tbody");
    const focused = [...body.querySelectorAll("th button")].indexOf(document.activeElement);
    body.replaceChildren();
    addRow(body, "full model", path.full, "var(--grey)", null);
    const sorted = [...kept].sort((a, b) => path.points[b].nodes - path.points[a].nodes);
    for (const place of sorted) {
      const mine = place === named.get("this model");
      addRow(body, nameOf(place) || "compared", path.points[place], mine ? "var(--red)" : "var(--blue)", place);
    }
    body.querySelectorAll("th button")[focused]?.focus(); // the rows are new ones
  }

  function update() {
    fillPanel();
    fillTable();
    putRing(shown);
    const point = path.points[shown], chart = $("path-chart");
    chart.setAttribute("aria-valuemax", line.length - 1);
    chart.setAttribute("aria-valuenow", Math.max(line.filter((i) => path.points[i].nodes <= point.nodes).length - 1, 0));
    chart.setAttribute("aria-valuetext", `${size(point)}, error ${digits(point.error)}${resplit(point).replace("\n", ", ")}`);
  }

  function show(place) {
    shown = place;
    update();
  }

  function walk(step) {
    const place = neighbour(step);
    if (place !== null) show(place);
  }

  for (const name of ["model", ...facts.map(([label]) => label), ""]) {
    element("th", name, document.querySelector("#comparison thead tr"), "columnheader");
  }
  fillPanel(); // first, because the chart is as high as the panel beside it
  drawPath();
  drawDepths();
  update();
  for (const [id, draw] of [["path-chart", drawPath], ["depth-chart", drawDepths]]) {
    new ResizeObserver(draw).observe($(id));
  }
  $("smaller").addEventListener("click", () => walk(-1));
  $("larger").addEventListener("click", () => walk(1));
  $("keep").addEventListener("click", () => {
    kept.push(shown);
    update();
  });
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    // What is wider than its place is scrolled with the same keys, and trees have their own.
    const more = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (step && !more && !event.target.closest(".scroll, pre, .curves")) {
      event.preventDefault();
      walk(step);
    }
  });
  // On paper there is nothing to unfold.
  const folded = [];
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not([open])")) {
      folded.push(fold);
      fold.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const fold of folded.splice(0)) fold.open = false;
  });
  document.documentElement.dataset.ready = "yes";
})();
