// What a browser makes of a page, written into it as JSON: what is cut off, text of low contrast, links that lead
// nowhere, errors, and the milliseconds until it was laid out.
addEventListener("load", () => {
  document.body.offsetHeight;
  const found = { milliseconds: performance.now(), width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches };
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  for (const one of document.querySelectorAll("section")) one.style.contentVisibility = "visible";
  hint(boxes);
  const name = e => `${e.tagName.toLowerCase()}.${e.className.baseVal ?? e.className} ${e.textContent.trim().slice(0, 40)}`;
  const everything = [...document.body.querySelectorAll("*")];
  const outer = everything.filter(e => !e.ownerSVGElement);
  const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);

  found.clipped = outer.filter(e => !scrolls(e) && e.clientWidth && e.scrollWidth > e.clientWidth + 1).map(name);
  found.outside = outer.filter(e => {
    let box = e.parentElement;
    while (box && !scrolls(box)) box = box.parentElement;
    return !box && e.getBoundingClientRect().right > innerWidth + 1;
  }).map(name);
  if (document.documentElement.scrollWidth > innerWidth) found.outside.push("the page");
  found.unmarked = outer.filter(e => scrolls(e) && e.matches(".scroll") && e.scrollWidth > e.clientWidth + 1)
    .filter(e => getComputedStyle(e, "::before").content === "none").map(name);
  found.beyond = outer.filter(e => e.matches(".below td:last-child") && e.getBoundingClientRect().right > innerWidth).map(name);
  found.beside = document.querySelectorAll("table.fits").length;
  found.needless = outer.filter(e => {
    if (!e.matches(".below:not(.fits)")) return false;
    e.classList.add("fits");
    const wide = e.offsetWidth > e.parentElement.clientWidth;
    e.classList.remove("fits");
    return !wide;
  }).map(name);
  found.scrolled = outer.filter(e => e.matches(".scroll") && e.scrollWidth > e.clientWidth + 1).length;

  const lines = e => { const text = document.createRange(); text.selectNodeContents(e); return text.getClientRects().length; };
  found.broken = outer.filter(e => e.matches("td.wrap") && lines(e) > 1).map(name);

  const rgb = text => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = {};
  for (const e of everything) {
    const own = [...e.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || ["script", "style", "title"].includes(e.tagName.toLowerCase())) continue;
    const style = getComputedStyle(e);
    const [a, b] = [rgb(e.ownerSVGElement ? style.fill : style.color), behind(e)].map(light).sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (style.fontWeight >= 700 && parseFloat(style.fontSize) >= 18.66);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) faint[name(e)] = (a + 0.05) / (b + 0.05);
  }
  found.faint = faint;

  found.links = [...document.querySelectorAll("a[href]")].map(a => a.getAttribute("href"));
  found.lost = found.links.filter(to => to.startsWith("#") && !document.getElementById(decodeURIComponent(to.slice(1))));
  found.errors = errors;
  const shown = document.createElement("pre");
  shown.id = "found";
  shown.textContent = JSON.stringify(found);
  document.body.append(shown);
});
