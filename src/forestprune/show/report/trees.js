"use strict";
// The drawn trees: their roots come into view, and keys go from node to node.
(() => {
  const nodesOf = (svg) => [...svg.querySelectorAll("[role=treeitem]")];
  const levelOf = (node) => Number(node.getAttribute("aria-level"));
  const aboutOf = new WeakMap(); // node: its parent, whether it is on the left, its neighbours, its text

  // Nodes come before those below them, and the left side before the right.
  function connect(svg) {
    const last = []; // node of each level that was met last
    for (const node of nodesOf(svg)) {
      const level = levelOf(node), parent = last[level - 1] ?? null;
      const before = last[level] ?? null;
      const title = node.querySelector("title");
      const about = { parent, before, after: null, child: null, text: title.textContent };
      title.remove(); // else there would be two boxes
      about.left = parent !== null && aboutOf.get(parent).child === null;
      if (about.left) aboutOf.get(parent).child = node;
      if (before !== null) aboutOf.get(before).after = node;
      last[level] = node;
      aboutOf.set(node, about);
      const side = parent === null ? "" : about.left ? "left: " : "right: ";
      node.setAttribute("aria-label", side + about.text);
    }
  }

  // The conditions on the way, and what the node itself says.
  function told(node) {
    const lines = [aboutOf.get(node).text];
    for (let at = node; aboutOf.get(at).parent !== null; at = aboutOf.get(at).parent) {
      const { parent, left } = aboutOf.get(at);
      lines.unshift(`${left ? "✓" : "✗"} ${aboutOf.get(parent).text}`);
    }
    return lines.join("\n");
  }

  function tell(node) {
    tip.show(told(node), () => node.querySelector("rect").getBoundingClientRect());
  }

  function centre(scroller, node, behavior) {
    const box = node.querySelector("rect").getBoundingClientRect(), place = scroller.getBoundingClientRect();
    const left = scroller.scrollLeft + (box.left + box.right) / 2 - (place.left + place.right) / 2;
    scroller.scrollTo({ left, behavior });
  }

  function goTo(svg, node) {
    for (const each of nodesOf(svg)) each.tabIndex = each === node ? 0 : -1;
    node.focus({ preventScroll: true });
    centre(svg.closest(".scroll"), node, "instant");
    node.scrollIntoView({ block: "nearest", inline: "nearest" });
    tell(node);
  }

  function press(svg, event) {
    const node = event.target.closest("[role=treeitem]");
    if (node === null || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { parent, before, after, child } = aboutOf.get(node);
    const keys = { ArrowUp: parent, ArrowDown: child, ArrowLeft: before, ArrowRight: after, Home: nodesOf(svg)[0] };
    if (!(event.key in keys)) return;
    event.preventDefault();
    if (keys[event.key] !== null) goTo(svg, keys[event.key]);
  }

  for (const svg of document.querySelectorAll("svg[role=tree]")) {
    const scroller = svg.closest(".scroll"), fold = svg.closest("details");
    connect(svg);
    svg.addEventListener("keydown", (event) => press(svg, event));
    // Not at the SVG, which such listeners would make a stop for Tab.
    scroller.addEventListener("focusin", (event) => {
      const node = event.target.closest("[role=treeitem]");
      if (node !== null && node.matches(":focus-visible")) tell(node);
    });
    scroller.addEventListener("focusout", tip.hide);
    svg.addEventListener("pointerover", (event) => {
      const node = event.target.closest("[role=treeitem]");
      if (node !== null) tell(node);
    });
    svg.addEventListener("pointerout", tip.hide);

    // What is wider than the page says so, and can be seen whole.
    const hint = fold.querySelector(".wide"), button = hint.querySelector("button");
    const fit = () => {
      const fitted = svg.classList.contains("fitted");
      const wide = scroller.scrollWidth > scroller.clientWidth + 1;
      hint.hidden = !wide && !fitted;
      hint.firstElementChild.hidden = fitted;
      button.textContent = fitted ? "large enough to read" : "see all of it at once";
      if (wide) centre(scroller, nodesOf(svg)[0], "instant");
    };
    button.addEventListener("click", () => {
      svg.classList.toggle("fitted");
      fit();
    });
    new ResizeObserver(fit).observe(scroller); // also when it is unfolded
  }
})();
