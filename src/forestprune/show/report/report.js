"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { path, depths, features } = data;
  const $ = (id) => document.getElementById(id);
  const count = (n) => n.toLocaleString("en-US");
  const size = (p) => `${count(p.nodes)} nodes, ${count(p.trees)} ${p.trees === 1 ? "tree" : "trees"}`;
  const digits = (x) => (x === null ? "–" : Number(x.toPrecision(4)).toString());
  // Plotly reads texts as a kind of HTML; names of features are not.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // A constant counts as one node, so that it has a place on the logarithmic axis.
  const at = (point) => Math.max(point.nodes, 1);
  const named = new Map(path.marks.map((mark) => [mark.name, mark.place]));
  const nameOf = (place) => path.marks.filter((mark) => mark.place === place).map((mark) => mark.name).join(", ");
  const line = path.points.map((_, i) => i).filter((i) => path.points[i].frontier)
    .sort((a, b) => path.points[a].nodes - path.points[b].nodes);
  const kept = [...new Set(named.values())];
  let shown = named.get("this model");
  let printing = false;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--ink") },
    hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--rule"), font: { color: colour("--ink") } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, bgcolor: "rgba(0,0,0,0)" },
    margin: { l: 62, r: 14, t: 14, b: 48 }, ...more,
    // On paper there is no window to fill.
    ...(printing ? { autosize: false, width: more.paper, height: more.height ?? 360 } : {}), paper: undefined,
  });
  const axis = (title, more) => ({
    title: { text: title }, gridcolor: colour("--rule"), linecolor: colour("--rule"), zeroline: false, automargin: true, ...more,
  });
  const settings = { displayModeBar: false, displaylogo: false, responsive: true };

  function logarithmic(values) {
    const all = [...Array(40).keys()].flatMap((i) => [1, 2, 5].map((first) => Number(`${first}e${i - 16}`)));
    const tickvals = all.filter((x) => x >= 0.5 * Math.min(...values) && x <= 2 * Math.max(...values));
    return { type: "log", tickvals, ticktext: tickvals.map(String) };
  }

  function drawPath() {
    const points = path.points;
    const ordered = line.map((i) => points[i]);
    const traces = [];
    if (path.held_out) {
      const upper = ordered.map((p) => p.error + p.standard_error);
      // A logarithmic axis has no place for zero and below.
      const lower = ordered.map((p) => Math.max(p.error - p.standard_error, 0.2 * p.error));
      traces.push({
        x: [...ordered.map(at), ...ordered.map(at).reverse()], y: [...upper, ...lower.reverse()],
        fill: "toself", fillcolor: colour("--band"), line: { width: 0 }, mode: "lines", hoverinfo: "skip", name: "one standard error",
      });
    }
    traces.push({
      x: ordered.map(at), y: ordered.map((p) => p.error), mode: "lines",
      line: { color: colour("--blue"), width: 2 }, hoverinfo: "skip", showlegend: false,
    });
    traces.push({
      x: points.map(at), y: points.map((p) => p.error), mode: "markers", customdata: points.map((_, i) => i),
      marker: { color: colour("--blue"), size: 7, opacity: points.map((p) => (p.frontier ? 1 : 0.3)) },
      text: points.map((p) => `${size(p)}<br>error ${digits(p.error)}`),
      hovertemplate: "%{text}<extra></extra>", showlegend: false,
    });
    const full = path.full;
    if (full.error !== null) {
      traces.push({
        x: [at(full)], y: [full.error], mode: "markers", name: "full model",
        marker: { color: colour("--grey"), size: 12, symbol: "diamond" },
        hovertemplate: `full model<br>${size(full)}<br>error ${digits(full.error)}<extra></extra>`,
      });
    }
    const taken = points[named.get("this model")];
    traces.push({
      x: [at(taken)], y: [taken.error], mode: "markers", name: "this model", hoverinfo: "skip",
      marker: { color: colour("--red"), size: 12, line: { color: colour("--page"), width: 1.5 } },
    });
    traces.push({
      x: [at(points[shown])], y: [points[shown].error], mode: "markers", name: "selected", hoverinfo: "skip",
      marker: { color: "rgba(0,0,0,0)", size: 19, line: { color: colour("--gold"), width: 3 } },
    });
    // Good models would all lie on the axis if the constant's error were drawn to the same scale.
    const errors = [...points.map((p) => p.error), full.error ?? taken.error];
    const wide = Math.min(...errors) > 0 && Math.max(...errors) > 8 * Math.min(...errors);
    const where = path.held_out ? "on rows held out" : "on the rows it was pruned with";
    const edges = full.error === null ? [{
      type: "line", x0: at(full), x1: at(full), yref: "paper", y0: 0, y1: 1, line: { color: colour("--grey"), dash: "dot", width: 1.5 },
    }] : [{
      type: "line", xref: "paper", x0: 0, x1: 1, y0: full.error, y1: full.error, line: { color: colour("--grey"), dash: "dot", width: 1.5 },
    }];
    return Plotly.react("path-chart", traces, layout({
      paper: 690, xaxis: axis("nodes", { type: "log", dtick: 1, tickformat: ",d" }), shapes: edges, hovermode: "closest", dragmode: false,
      yaxis: axis(`error ${where}, 1 − R²${path.own ? " against the full model" : ""}`, wide ? logarithmic(errors) : {}),
    }), settings);
  }

  function bars(name, values, tint, more) {
    return { type: "bar", name, marker: { color: colour(tint) }, ...values, ...more };
  }

  function drawDepths() {
    const x = depths.before.map((_, i) => i);
    const label = x.map((i) => (i === 0 && depths.after[0] > 0 && !depths.before[0] ? "gone" : String(i)));
    const step = Math.max(1, Math.ceil(x.length / 16));
    const some = x.filter((i) => i % step === 0);
    return Plotly.react("depth-chart", [
      bars("before", { x, y: depths.before }, "--grey", { opacity: 0.5, hovertemplate: "depth %{x}: %{y:,} before<extra></extra>" }),
      bars("after", { x, y: depths.after }, "--blue", { hovertemplate: "depth %{x}: %{y:,} after<extra></extra>" }),
    ], layout({
      paper: 330, barmode: "group", bargap: 0.2, dragmode: false,
      xaxis: axis("depth", { tickvals: some, ticktext: some.map((i) => label[i]), showgrid: false }),
      yaxis: axis("trees", { tickformat: ",d", rangemode: "tozero" }),
    }), settings);
  }

  function drawFeatures() {
    const rows = features.shown;
    const y = rows.map((_, i) => i);
    const share = (n, all) => (all ? (100 * n) / all : 0);
    const told = (key) => rows.map((row) => `${plain(row.name)}: ${count(row[key])} splits ${key}`);
    const height = Math.max(330, 110 + 24 * rows.length);
    return Plotly.react("feature-chart", [
      bars("before", { y, x: rows.map((row) => share(row.before, features.splits_before)) }, "--grey",
        { orientation: "h", opacity: 0.5, text: told("before"), textposition: "none", hovertemplate: "%{text}<extra></extra>" }),
      bars("after", { y, x: rows.map((row) => share(row.after, features.splits_after)) }, "--blue",
        { orientation: "h", text: told("after"), textposition: "none", hovertemplate: "%{text}<extra></extra>" }),
    ], layout({
      paper: 330, barmode: "group", bargap: 0.25, height, dragmode: false, hovermode: "closest",
      xaxis: axis("share of all splits, %", { rangemode: "tozero" }),
      yaxis: axis("", { tickvals: y, ticktext: rows.map((row) => plain(row.short)), autorange: "reversed", showgrid: false }),
    }), settings);
  }

  function element(tag, text, parent) {
    const made = document.createElement(tag);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  function fillPanel() {
    const point = path.points[shown];
    $("panel-name").textContent = nameOf(shown) || `${count(point.nodes)} nodes`;
    const facts = [
      ["nodes", count(point.nodes)], ["trees", count(point.trees)], ["deepest tree", count(point.depth)],
      ["error, 1 − R²", digits(point.error)],
    ];
    if (path.held_out) {
      facts.push(["± standard error", digits(point.standard_error)]);
      if (path.full.error > 0) {
        const change = 100 * (point.error / path.full.error - 1);
        facts.push(["error, against full", `${change >= 0 ? "+" : "−"}${Math.abs(change).toFixed(1)} %`]);
      }
    }
    if (point.nodes) facts.push(["nodes, full / this", (path.full.nodes / point.nodes).toFixed(1)]);
    facts.push(["alpha", digits(point.alpha)]);
    if (point.shrinkage !== null) facts.push(["shrinkage", digits(point.shrinkage)]);
    const list = $("panel-facts");
    list.replaceChildren();
    for (const [name, value] of facts) {
      element("dt", name, list);
      element("dd", value, list);
    }
    // What a command finds within a budget may be another model as large as this one.
    $("panel-how").textContent = path.by_command ? "To get one of this size:" : "To get it:";
    $("panel-call").replaceChildren();
    const words = (point.call ?? "A constant: no tree is left.").split(" ");
    for (const [i, word] of words.entries()) {
      if (i) $("panel-call").append(" ");
      element("span", word, $("panel-call")); // so that lines do not end within --max-nodes
    }
    const place = neighbour(-1);
    $("smaller").disabled = place === null;
    $("larger").disabled = neighbour(1) === null;
    $("keep").disabled = kept.includes(shown);
  }

  function neighbour(step) {
    const nodes = path.points[shown].nodes;
    const others = line.filter((i) => (step < 0 ? path.points[i].nodes < nodes : path.points[i].nodes > nodes));
    if (!others.length) return null;
    return step < 0 ? others[others.length - 1] : others[0];
  }

  function fillTable() {
    const body = document.querySelector("#comparison tbody");
    body.replaceChildren();
    const add = (name, point, tint, place) => {
      const row = document.createElement("tr");
      const first = element("td", "", row);
      const dot = element("span", "", first);
      dot.className = "swatch";
      dot.style.background = tint;
      first.append(name);
      element("td", count(point.nodes), row);
      element("td", count(point.trees), row);
      element("td", count(point.depth), row);
      element("td", digits(point.error), row);
      element("td", digits(point.standard_error ?? null), row);
      element("td", point.nodes ? (path.full.nodes / point.nodes).toFixed(1) : "–", row);
      const last = element("td", "", row);
      if (place !== null) {
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
      body.append(row);
    };
    add("full model", path.full, "var(--grey)", null);
    const sorted = [...kept].sort((a, b) => path.points[b].nodes - path.points[a].nodes);
    for (const place of sorted) {
      const mine = place === named.get("this model");
      add(nameOf(place) || "compared", path.points[place], mine ? "var(--red)" : "var(--blue)", place);
    }
  }

  function update() {
    fillPanel();
    fillTable();
    const ring = $("path-chart").data.length - 1;
    Plotly.restyle("path-chart", { x: [[at(path.points[shown])]], y: [[path.points[shown].error]] }, [ring]);
  }

  function show(place) {
    shown = place;
    update();
  }

  function walk(step) {
    const place = neighbour(step);
    if (place !== null) show(place);
  }

  function draw() {
    return Promise.all([drawPath(), drawDepths(), drawFeatures()]);
  }

  fillPanel(); // first, because the chart is as high as the panel beside it
  draw().then(() => {
    $("path-chart").on("plotly_click", (event) => {
      const place = event.points.map((point) => point.customdata).find((number) => number !== undefined);
      if (place !== undefined) show(place);
    });
    $("smaller").addEventListener("click", () => walk(-1));
    $("larger").addEventListener("click", () => walk(1));
    $("keep").addEventListener("click", () => {
      kept.push(shown);
      update();
    });
    document.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      // What is wider than its place is scrolled with the same keys.
      const more = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      if (step && !more && !event.target.closest(".scroll, pre")) {
        event.preventDefault();
        walk(step);
      }
    });
    update();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    // On paper there is nothing to unfold, and the colours are those of paper.
    const folded = [];
    addEventListener("beforeprint", () => {
      for (const fold of document.querySelectorAll("details:not([open])")) {
        folded.push(fold);
        fold.open = true;
      }
      printing = true;
      draw();
    });
    addEventListener("afterprint", () => {
      for (const fold of folded.splice(0)) fold.open = false;
      printing = false;
      draw();
    });
    document.documentElement.dataset.ready = "yes";
  });
})();
