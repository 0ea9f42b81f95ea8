"""What a browser says of a page: its colours as it computed them, what sticks out, what the keyboard reaches."""

from __future__ import annotations

CONTRAST = """
() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (channel) => { const c = channel / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE", "title", "desc"].includes(element.tagName)) continue;
    if (!element.checkVisibility()) continue;
    const inDrawing = element.namespaceURI.endsWith("svg");
    const style = getComputedStyle(element);
    const colour = numbers(inDrawing ? style.fill : style.color);
    const [one, other] = [luminance(colour), luminance(behind(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    seen += 1;
    const text = walker.currentNode.data.trim().slice(0, 40);
    const name = `${element.tagName}.${element.className.baseVal ?? element.className}`;
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${name}: ${text}`);
  }
  return [seen, [...new Set(found)]];
}
"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
UNFOLD = "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"
WORDS = """
() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isApart = element.closest("table, svg, .bars, script, option, .only-read, .skip");
    const isFolded = element.closest("details:not([open])") && !element.closest("summary");
    if (isApart || isFolded || !element.checkVisibility()) continue;
    count += walker.currentNode.data.split(/\\s+/).filter((word) => /[\\p{L}\\p{N}]/u.test(word)).length;
  }
  return count;
}
"""
FOCUSED = """
() => {
  const one = document.activeElement;
  const shape = getComputedStyle(one);
  const isOutlined = shape.outlineStyle !== "none" && shape.outlineWidth !== "0px";
  return [one.tagName, one.className, one.getAttribute("role") || "", isOutlined];
}
"""
CUT = """
() => [...document.querySelectorAll("caption")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth)
  .map((one) => one.innerText)
"""
LOW_CONTRAST = "() => { document.querySelector('main p').style.color = '#aaa'; }"
WIDE = (
    "() => { document.querySelector('main p').style.width = '2000px'; document.querySelector('main p').style.maxWidth = 'none'; }"
)
