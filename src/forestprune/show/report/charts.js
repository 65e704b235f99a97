"use strict";
// Charts as SVG: axes, the models of a path, and bars. Colours are in the style sheet, so that they
// follow the page, light, dark or printed.
const charts = (() => {
  const NEAR = 28; // pixels within which a dot is meant
  const LETTER = 7.3; // width of one, about

  function add(parent, tag, attributes = {}, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }

  // Drawn in pixels of the screen, so that letters are as large as elsewhere; paper scales it.
  function open(host) {
    const width = Math.max(host.clientWidth, 240), height = Math.max(host.clientHeight, 200);
    host.replaceChildren();
    const svg = add(host, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    return { svg, width, height };
  }

  const spelled = (x) => Number(x.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 10 });

  function roundTicks(low, high, most) {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((first) => first * power >= rough);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(i * step);
    return ticks;
  }

  function logTicks(low, high) {
    const between = (firsts) => {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        ticks.push(...firsts.map((first) => first * 10 ** power).filter((x) => x >= low && x <= high));
      }
      return ticks;
    };
    return high / low > 300 ? between([1]) : between([1, 2, 5]);
  }

  // A scale maps values to pixels between `from` and `to`.
  function linearScale(low, high, from, to, most) {
    const at = (value) => from + ((value - low) / (high - low)) * (to - from);
    return Object.assign(at, { low, high, ticks: roundTicks(low, high, most) });
  }

  function logScale(low, high, from, to) {
    const at = (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
    return Object.assign(at, { low, high, ticks: logTicks(low, high) });
  }

  function leftOf(labels) {
    return 26 + LETTER * Math.max(...labels.map((label) => label.length));
  }

  function yAxis(svg, scale, left, right, title) {
    const middle = (scale(scale.low) + scale(scale.high)) / 2;
    for (const tick of scale.ticks) {
      add(svg, "line", { class: "grid", x1: left, x2: right, y1: scale(tick), y2: scale(tick) });
      add(svg, "text", { class: "tick", x: left - 7, y: scale(tick) + 4, "text-anchor": "end" }, spelled(tick));
    }
    add(svg, "text", { class: "title", transform: `translate(13 ${middle}) rotate(-90)`, "text-anchor": "middle" }, title);
  }

  function xTick(svg, x, bottom, text) {
    add(svg, "text", { class: "tick", x, y: bottom + 17, "text-anchor": "middle" }, text);
  }

  function xTitle(svg, left, right, bottom, text) {
    add(svg, "text", { class: "title", x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, text);
  }

  // Errors of good models would all lie on the axis if the constant's were drawn to the same scale.
  function errorScale(errors, edges, bottom, top) {
    const low = Math.min(...errors), high = Math.max(...errors);
    if (low > 0 && high > 8 * low) return logScale(low / 1.25, high * 1.15, bottom, top);
    const least = Math.min(low, ...edges), most = Math.max(high, ...edges);
    const room = 0.04 * (most - least || Math.abs(most) || 1);
    return linearScale(least - room, most + room, bottom, top, 7);
  }

  // A constant has no nodes, and a logarithmic axis no place for that: it has its own, left of it.
  function nodeScale(sizes, left, right) {
    const some = sizes.filter((n) => n > 0), constant = sizes.some((n) => n === 0);
    const start = left + (constant ? 44 : 0);
    const low = some.length ? Math.min(...some) / 1.15 : 1, high = some.length ? Math.max(...some) * 1.2 : 10;
    const scale = logScale(low, high, start, right);
    return Object.assign((n) => (n ? scale(n) : left + 18), { ticks: some.length ? scale.ticks : [], start, constant });
  }

  function screen(svg, width) {
    const box = svg.getBoundingClientRect();
    return { box, scale: box.width / width };
  }

  function nearestDot(svg, width, dots, event) {
    const { box, scale } = screen(svg, width);
    const away = (dot) => Math.hypot(box.left + scale * dot.cx - event.clientX, box.top + scale * dot.cy - event.clientY);
    const best = dots.reduce((a, b) => (away(b) < away(a) ? b : a));
    return away(best) <= NEAR ? best : null;
  }

  // Return a function that puts the ring around another model. `told` says what a model is, and
  // `pick` is called with the place of one that is clicked.
  function drawPath(host, { points, full, line, mine, title, told, pick }) {
    const { svg, width, height } = open(host);
    const top = 12, bottom = height - 50, right = width - 16;
    const errors = [...points, full].map((point) => point.error).filter((error) => error !== null);
    const spread = line.map((i) => points[i]).filter((point) => point.standard_error !== null);
    const edges = spread.flatMap((p) => [p.error - p.standard_error, p.error + p.standard_error]);
    const y = errorScale(errors, edges, bottom, top);
    const left = leftOf(y.ticks.map(spelled));
    const x = nodeScale([...points, full].map((point) => point.nodes), left, right);

    yAxis(svg, y, left, right, title);
    for (const tick of x.ticks) {
      add(svg, "line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom });
    }
    let free = -Infinity; // where the next label may begin
    for (const tick of x.ticks) {
      const label = spelled(tick), half = (LETTER * label.length) / 2;
      if (x(tick) - half < free) continue;
      xTick(svg, x(tick), bottom, label);
      free = x(tick) + half + 6;
    }
    xTitle(svg, left, right, bottom, "nodes");
    const axis = (from, to) => add(svg, "line", { class: "axis", x1: from, x2: to, y1: bottom, y2: bottom });
    axis(x.start, right);
    if (x.constant) {
      axis(left, x.start - 8);
      xTick(svg, x(0), bottom, "0");
      for (const at of [x.start - 8, x.start]) {
        add(svg, "line", { class: "axis", x1: at - 3, x2: at + 3, y1: bottom + 5, y2: bottom - 5 });
      }
    }

    const trees = line.map((i) => points[i]).filter((point) => point.nodes);
    const inside = (value) => y(Math.min(Math.max(value, y.low), y.high));
    const upper = (p) => inside(p.error + p.standard_error), lower = (p) => inside(p.error - p.standard_error);
    if (spread.length) {
      const edge = [...trees.map((p) => `${x(p.nodes)},${upper(p)}`), ...trees.map((p) => `${x(p.nodes)},${lower(p)}`).reverse()];
      add(svg, "polygon", { class: "band", points: edge.join(" ") });
      for (const p of spread.filter((point) => !point.nodes)) {
        add(svg, "rect", { class: "band", x: x(0) - 4, width: 8, y: upper(p), height: Math.max(lower(p) - upper(p), 1) });
      }
    }
    if (full.error === null) add(svg, "line", { class: "dotted", x1: x(full.nodes), x2: x(full.nodes), y1: top, y2: bottom });
    else add(svg, "line", { class: "dotted", x1: left, x2: right, y1: y(full.error), y2: y(full.error) });
    add(svg, "polyline", { class: "curve", points: trees.map((p) => `${x(p.nodes)},${y(p.error)}`).join(" ") });
    const dots = points.map((point, place) => ({ place, cx: x(point.nodes), cy: y(point.error), text: told(point) }));
    for (const { place, cx, cy } of dots) {
      const shape = { class: points[place].frontier ? "dot" : "dot beaten", "data-place": place };
      if (points[place].new_splits) {
        add(svg, "path", { ...shape, class: `${shape.class} resplit`, d: `M${cx} ${cy - 5.2}l5 8.7h-10z` });
      } else add(svg, "circle", { ...shape, cx, cy, r: 3.5 });
    }
    if (full.error !== null) {
      const [cx, cy] = [x(full.nodes), y(full.error)];
      add(svg, "path", { class: "diamond", d: `M${cx} ${cy - 7}l7 7l-7 7l-7 -7z` });
      dots.push({ place: null, cx, cy, text: `full model\n${told(full)}` });
    }
    add(svg, "circle", { class: "mine", cx: dots[mine].cx, cy: dots[mine].cy, r: 6 });
    const ring = add(svg, "circle", { class: "ring", r: 9.5 });

    const nearest = (event) => nearestDot(svg, width, dots, event);
    svg.addEventListener("pointermove", (event) => {
      const dot = nearest(event);
      if (dot === null) return tip.hide();
      tip.show(dot.text, () => {
        const { box, scale } = screen(svg, width);
        const [px, py] = [box.left + scale * dot.cx, box.top + scale * dot.cy];
        return { left: px, right: px, top: py - 6, bottom: py + 6 };
      });
    });
    svg.addEventListener("pointerleave", tip.hide);
    svg.addEventListener("click", (event) => {
      const dot = nearest(event);
      if (dot !== null && dot.place !== null) pick(dot.place);
    });
    return (place) => {
      ring.setAttribute("cx", dots[place].cx);
      ring.setAttribute("cy", dots[place].cy);
    };
  }

  // Columns side by side: `series` of values, for each of `labels`.
  function drawColumns(host, { labels, series, titles, told }) {
    const { svg, width, height } = open(host);
    const top = 12, bottom = height - 50, right = width - 10;
    const highest = Math.max(...series.flatMap((each) => each.values), 1);
    const y = linearScale(0, 1.05 * highest, bottom, top, Math.min(highest, 5));
    const left = leftOf(y.ticks.map(spelled));
    const slot = (right - left) / labels.length, bar = (0.8 * slot) / series.length;
    yAxis(svg, y, left, right, titles.y);
    const step = Math.ceil((LETTER * Math.max(...labels.map((label) => label.length)) + 6) / slot);
    for (const [i, label] of labels.entries()) {
      const start = left + (i + 0.1) * slot;
      for (const [number, { name, values }] of series.entries()) {
        const at = y(values[i]);
        if (values[i]) add(svg, "rect", { class: name, x: start + number * bar, width: bar, y: at, height: bottom - at });
      }
      if (i % step === 0) xTick(svg, left + (i + 0.5) * slot, bottom, label);
      const column = add(svg, "rect", { class: "column", x: left + i * slot, width: slot, y: top, height: bottom - top });
      column.addEventListener("pointerenter", () => tip.show(told(i), () => column.getBoundingClientRect()));
      column.addEventListener("pointerleave", tip.hide);
    }
    add(svg, "line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    xTitle(svg, left, right, bottom, titles.x);
  }

  // Shares against shares: a line for each of `series`, whose `dots` have x, y, r and text, and the
  // line on which both are the same.
  function drawShares(host, { series, titles }) {
    const { svg, width, height } = open(host);
    const top = 12, bottom = height - 50, left = 60;
    const right = Math.min(width - 16, left + 1.25 * (bottom - top)); // nearly a square
    const x = linearScale(0, 1, left, right, 5), y = linearScale(0, 1, bottom, top, 5);
    const spelledShare = (tick) => `${Math.round(100 * tick)}`;
    for (const tick of y.ticks) {
      add(svg, "line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) });
      add(svg, "line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom });
      add(svg, "text", { class: "tick", x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, spelledShare(tick));
      xTick(svg, x(tick), bottom, spelledShare(tick));
    }
    add(svg, "text", { class: "title", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, titles.y);
    xTitle(svg, left, right, bottom, titles.x);
    add(svg, "line", { class: "dotted", x1: x(0), y1: y(0), x2: x(1), y2: y(1) });
    const dots = [];
    for (const { name, dots: own } of series) {
      add(svg, "polyline", { class: `${name}-line`, points: own.map((dot) => `${x(dot.x)},${y(dot.y)}`).join(" ") });
      for (const dot of own) {
        dots.push({ ...dot, cx: x(dot.x), cy: y(dot.y) });
        if (dot.r) add(svg, "circle", { class: `${name}-dot`, cx: x(dot.x), cy: y(dot.y), r: dot.r });
      }
    }
    const mark = add(svg, "circle", { class: "ring", r: 7, visibility: "hidden" });
    const tell = (dot) => {
      mark.setAttribute("visibility", dot === null ? "hidden" : "visible");
      if (dot === null) return tip.hide();
      mark.setAttribute("cx", dot.cx);
      mark.setAttribute("cy", dot.cy);
      tip.show(dot.text, () => mark.getBoundingClientRect());
    };
    svg.addEventListener("pointermove", (event) => tell(nearestDot(svg, width, dots, event)));
    svg.addEventListener("pointerleave", () => tell(null));
    return { tell, dots };
  }

  return { drawPath, drawColumns, drawShares };
})();
