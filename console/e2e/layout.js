/**
 * layoutFaults returns texts that overlap, texts that leave the window or their cell, words that are of up to 12
 * letters that are broken, texts cut to less than six letters, and cells of tables without width or that are hidden. It runs in the page.
 */
export function layoutFaults() {
  const faults = [], texts = [];
  const name = (text) => JSON.stringify(text.trim().slice(0, 40));
  const styles = new Map(), style = (e) => styles.get(e) ?? styles.set(e, getComputedStyle(e)).get(e);
  // clip returns the part of the box that the ancestors of the element show, or null.
  const clip = (box, element) => {
    let { left, top, right, bottom } = box;
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      const s = style(e);
      if (["fixed", "sticky"].includes(s.position) || s.clipPath !== "none" || s.opacity === "0") return null;
      if (s.overflowX === "visible" && s.overflowY === "visible") continue;
      const b = e.getBoundingClientRect();
      if (b.width <= 1 || b.height <= 1) return null;
      [left, top, right, bottom] = [Math.max(left, b.left), Math.max(top, b.top), Math.min(right, b.right), Math.min(bottom, b.bottom)];
    }
    return right - left > 0.5 && bottom - top > 0.5 ? { left, top, right, bottom } : null;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION", "TEXTAREA"].includes(e.tagName) || !e.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = rect.width && clip(rect, e);
      if (!box) continue;
      texts.push({ ...box, text: node.data, e });
      if (box.right > innerWidth + 1 || box.left < -1) faults.push(`${name(node.data)} leaves the window`);
      const cell = e.closest("td, th");
      if (cell && box.right > cell.getBoundingClientRect().right + 1) faults.push(`${name(node.data)} leaves its cell`);
    }
    if (!e.closest("code, pre")) for (const { 0: word, index } of node.data.matchAll(/[A-Za-z]{2,12}/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].filter((r) => clip(r, e)).map((r) => Math.round(r.top)));
      const whole = /^$|[^\w.@/-]/; // not a part of an address or a number
      if (lines.size > 1 && whole.test(node.data.slice(0, index).slice(-1)) && whole.test(node.data.slice(index + word.length)[0] ?? "")) faults.push(`${name(word)} is broken into ${lines.size} lines`);
    }
  }
  texts.sort((a, b) => a.top - b.top);
  for (const [i, a] of texts.entries()) {
    for (let j = i + 1; j < texts.length && texts[j].top < a.bottom - 3; j++) {
      const b = texts[j];
      if (a.e !== b.e && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) faults.push(`${name(a.text)} and ${name(b.text)} overlap`);
    }
  }
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility()) continue;
    const s = style(e), box = e.getBoundingClientRect();
    if (s.textOverflow === "ellipsis" && s.overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1 && e.clientWidth < 48 && box.height > 1 && e.textContent.trim()) faults.push(`${name(e.textContent)} is cut to ${e.clientWidth} pixels`);
    if (["TD", "TH"].includes(e.tagName) && e.textContent.trim() && box.width < 16 && clip({ left: box.left - 1, top: box.top, right: box.right + 1, bottom: box.bottom }, e.parentElement)) faults.push(`a cell with ${name(e.textContent)} is ${box.width} pixels wide`);
  }
  for (const e of document.querySelectorAll(".table tbody > tr > *")) {
    if (style(e).display === "none" && !/^–?$/.test(e.textContent.trim())) faults.push(`a cell with ${name(e.textContent)} is hidden`);
  }
  return [...new Set(faults)];
}

/** menuFaults opens each menu, and returns its items that something covers or that leave the window. It runs in the page. */
export function menuFaults() {
  const faults = [];
  for (const menu of document.querySelectorAll("details.menu")) {
    if (!menu.checkVisibility()) continue;
    menu.open = true;
    menu.scrollIntoView({ block: "center", behavior: "instant" });
    const panel = menu.querySelector(":scope > :is(ul, .menu-panel)");
    for (const item of panel.querySelectorAll("a, button, input, label")) {
      const { left, right, top, bottom } = item.getBoundingClientRect(), y = (top + bottom) / 2;
      if (right <= left || y < 0 || y >= innerHeight) continue;
      const name = JSON.stringify((item.textContent.trim() || item.tagName).slice(0, 40));
      if (left < 0 || right > innerWidth) faults.push(`${name} of a menu leaves the window`);
      for (const x of [left + 3, (left + right) / 2, right - 3]) {
        const at = document.elementFromPoint(x, y);
        if (at && !panel.contains(at)) faults.push(`${name} of a menu is under ${at.outerHTML.slice(0, 60)}`);
      }
    }
    menu.open = false;
  }
  scrollTo(0, 0);
  return [...new Set(faults)];
}

/**
 * scrollFaults scrolls each table that is too wide to its end, and returns names and email addresses that do not stay.
 * It runs in the page.
 */
export function scrollFaults() {
  const faults = [];
  for (const box of document.querySelectorAll(".results")) {
    if (box.scrollWidth <= box.clientWidth + 1) continue;
    box.scrollLeft = box.scrollWidth;
    for (const cell of box.querySelectorAll("tr > :first-child, .col-email")) {
      cell.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
      box.scrollLeft = box.scrollWidth;
      const { left, right, top, bottom } = cell.getBoundingClientRect();
      if (!cell.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2))) faults.push(`${JSON.stringify(cell.textContent.trim().slice(0, 40))} does not stay when the table scrolls`);
    }
    box.scrollLeft = 0;
  }
  scrollTo(0, 0);
  return [...new Set(faults)];
}
