"use strict";
// How well a class is told apart from the others: its ROC curve and its reliability, before and after.
(() => {
  const { curves } = JSON.parse(document.getElementById("data").textContent);
  if (curves === null) return;
  const MODELS = [["before", "full model"], ["after", "this model"]];
  const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
  const choice = document.getElementById("curve-class");
  let shown = 0;

  const rocDots = (one, model, who) => model.roc.map(([others, found, threshold]) => ({
    x: others, y: found, r: 0,
    text: `${who}, probability ${threshold > 1 ? "above 1" : `≥ ${threshold.toPrecision(2)}`}\n${percent(found)} of ${one.name} found\n${percent(others)} of others taken for it`,
  }));

  const reliabilityDots = (one, model, who) => model.calibration.map(([mean, share, rows]) => ({
    x: mean, y: share, r: 2.5 + 8 * Math.sqrt(rows / total()),
    text: `${who}, ${rows.toLocaleString("en-US")} row${rows === 1 ? "" : "s"}\nprobability ${percent(mean)} on average\n${percent(share)} are ${one.name}`,
  }));

  const total = () => curves.classes[shown].models.after.calibration.reduce((sum, [, , rows]) => sum + rows, 0);

  const CHARTS = [
    { id: "roc-chart", dots: rocDots, name: "ROC curve", titles: { x: "others taken for it, %", y: "found, %" } },
    { id: "calibration-chart", dots: reliabilityDots, name: "reliability", titles: { x: "probability, %", y: "are of the class, %" } },
  ];

  function draw(chart) {
    const one = curves.classes[shown], host = document.getElementById(chart.id);
    const series = MODELS.map(([name, who]) => ({ name, dots: chart.dots(one, one.models[name], who) }));
    const { tell, dots } = charts.drawShares(host, { series, titles: chart.titles });
    Object.assign(chart, { tell, own: dots.slice(series[0].dots.length), at: null });
    host.setAttribute("aria-label", `${chart.name} of ${one.name}, this model`);
    host.setAttribute("aria-valuemin", 0);
    host.setAttribute("aria-valuemax", chart.own.length - 1);
    host.setAttribute("aria-valuenow", 0);
  }

  // Along the curve of the small model.
  function step(chart, host, by) {
    const last = chart.own.length - 1;
    chart.at = chart.at === null ? (by > 0 ? 0 : last) : Math.min(Math.max(chart.at + by, 0), last);
    const dot = chart.own[chart.at];
    host.setAttribute("aria-valuenow", chart.at);
    host.setAttribute("aria-valuetext", dot.text);
    chart.tell(dot);
  }

  function show() {
    const { models } = curves.classes[shown];
    document.getElementById("roc-areas").textContent = `Area: ${models.before.auc} before, ${models.after.auc} after.`;
    CHARTS.forEach(draw);
  }

  for (const chart of CHARTS) {
    const host = document.getElementById(chart.id);
    host.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      step(chart, host, by);
    });
    host.addEventListener("blur", () => chart.tell(null));
    new ResizeObserver(() => draw(chart)).observe(host);
  }
  choice?.addEventListener("change", () => {
    shown = Number(choice.value);
    show();
  });
  show();
})();
