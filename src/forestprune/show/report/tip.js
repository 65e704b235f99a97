"use strict";
// The box that tells more of what one points at or goes to with keys.
const tip = (() => {
  const box = document.getElementById("tip");
  const MARGIN = 8;

  let place = null; // returns the rectangle on the screen that the box is about

  function hide() {
    box.hidden = true;
    place = null;
  }

  // Above what it is about, or below if there is no room; never out of the window.
  function put() {
    const { width, height } = box.getBoundingClientRect();
    const { left, right, top, bottom } = place();
    const furthest = document.documentElement.clientWidth - width - MARGIN;
    const above = top - height - MARGIN;
    box.style.left = `${Math.max(MARGIN, Math.min((left + right - width) / 2, furthest))}px`;
    box.style.top = `${above >= 0 ? above : bottom + MARGIN}px`;
  }

  function show(text, about) {
    box.textContent = text;
    box.hidden = false;
    place = about;
    put();
  }

  // Keys make pages scroll too, so the box goes along.
  addEventListener("scroll", () => place === null || put(), { capture: true, passive: true });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  return { show, hide };
})();
