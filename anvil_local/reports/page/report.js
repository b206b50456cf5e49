"use strict";
// Every text of the data goes through textContent: nothing here writes HTML.
(() => {
  const { samples, texts } = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const list = get("list"), more = get("more"), shown = get("shown"), tools = get("tools");
  const find = get("find"), metric = get("metric"), sort = get("sort"), all = get("all");
  const STEP = 100;
  const SIGN = { yes: "✓", no: "✕", open: "?" };
  const SVG = "http://www.w3.org/2000/svg";

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  function gauge(margin) {
    // The margin as a bar to the left or the right of 0; 6 nats fill it.
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 84 10");
    svg.setAttribute("aria-hidden", "true");
    const part = (tag, attributes) => {
      const node = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      svg.append(node);
    };
    const length = Math.min(Math.abs(margin) / 6, 1) * 41;
    part("rect", { class: "gauge", x: 0.5, y: 2.5, width: 83, height: 5, rx: 2.5 });
    part("rect", { class: margin > 0 ? "gauge-yes" : "gauge-no", x: margin > 0 ? 42 : 42 - length, y: 2, width: length, height: 6, rx: 2 });
    part("line", { class: "zero", x1: 42, y1: 0, x2: 42, y2: 10 });
    return svg;
  }

  const word = (verdict) => el("span", { class: `word ${verdict.state}` }, `${SIGN[verdict.state]} ${verdict.word}`);

  function details(verdict) {
    const line = el("div", { class: "more" });
    if (verdict.number !== null) line.append(gauge(verdict.number));
    line.append(el("span", {}, verdict.number !== null ? `margin ${verdict.margin}` : verdict.margin));
    for (const note of verdict.notes) line.append(el("span", {}, note));
    return line;
  }

  function claim(sample, item, k) {
    const id = `${sample.anchor}.${k + 1}`;
    return el("li", { id }, el("a", { class: "number", href: `#${id}`, "aria-label": `link to statement ${k + 1}` }, String(k + 1)),
      el("span", {}, word(item)), el("p", {}, item.text), details(item));
  }

  function response(sample) {
    const box = el("p", { class: "text response" });
    for (const [text, on, closing] of sample.response) {
      if (!on.length) { box.append(text); continue; }
      const states = on.map((k) => sample.statements[k].state);
      const state = ["no", "open", "yes"].find((name) => states.includes(name));
      box.append(el("mark", { class: state, "data-on": on.join(" ") }, text));
      if (!closing.length) continue;
      const refs = el("span", { class: "refs" });
      for (const k of closing) {
        const item = sample.statements[k];
        refs.append(el("a", { href: `#${sample.anchor}.${k + 1}`, "aria-label": `statement ${k + 1}: ${item.word}` }, `${SIGN[item.state]}${k + 1}`));
      }
      box.append(refs);
    }
    return box;
  }

  function light(box) {
    // Pointing at a statement outlines its place in the response.
    const lit = (event, on) => {
      const item = event.target.closest(".claims > li");
      if (!item) return;
      const k = item.id.slice(item.id.lastIndexOf(".") + 1) - 1;
      for (const mark of box.querySelectorAll("mark")) {
        if (mark.dataset.on.split(" ").includes(String(k))) mark.classList.toggle("lit", on);
      }
    };
    for (const [name, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
      box.addEventListener(name, (event) => lit(event, on));
    }
  }

  const heading = (text) => el("h4", {}, text);
  const block = (title, text) => text === null ? [] : [heading(title), el("p", { class: "text" }, text)];

  function body(sample) {
    const left = el("div"), right = el("div");
    const box = el("div", { class: "body" }, el("p", { class: "where" }, ...sample.facts.map((fact) => el("span", {}, fact))), left, right);
    if (sample.goal) {
      const goal = sample.goal;
      const facts = el("dl", { class: "facts2" });
      for (const [name, text] of goal.facts) facts.append(el("dt", {}, name), el("dd", {}, text));
      left.append(heading("Outcome"), facts, heading("Verdicts"));
      const verdicts = el("ul", { class: "claims" });
      goal.verdicts.forEach((item, k) => verdicts.append(claim(sample, item, k)));
      left.append(verdicts);
    }
    left.append(...block("Question", sample.question));
    if (sample.response) {
      left.append(heading("Response"), response(sample));
      if (sample.statements.length) left.append(el("p", { class: "key" }, "✓ supported", el("span", {}, "✕ refused"), el("span", {}, "? undecided")));
    }
    if (sample.statements.length) {
      const claims = el("ol", { class: "claims" });
      sample.statements.forEach((item, k) => claims.append(claim(sample, item, k)));
      left.append(heading("Statements"), claims);
    }
    if (sample.dropped.length) {
      const dropped = el("ul", { class: "text" });
      for (const text of sample.dropped) dropped.append(el("li", {}, text));
      left.append(el("details", { class: "source" }, el("summary", {}, `${sample.dropped.length} dropped before judging`), dropped));
    }
    if (sample.contexts) {
      right.append(heading("Context"));
      if (!sample.contexts.length) right.append(el("p", { class: "empty" }, "none"));
      sample.contexts.forEach((k, number) => {
        const source = el("details", { class: "source" }, el("summary", {}, `Context ${number + 1}, ${texts[k].length} characters`), el("div", { class: "text", tabindex: 0, role: "group", "aria-label": `Context ${number + 1}` }, texts[k] || "(empty)"));
        source.open = sample.contexts.length < 4;
        right.append(source);
      });
    }
    right.append(...block("Reference", sample.reference));
    if (sample.trace) {
      const turns = el("ol", { class: "turns" });
      for (const turn of sample.trace) {
        turns.append(el("li", { class: turn.role }, el("b", {}, turn.speaker), turn.text ? el("div", { class: "text" }, turn.text) : null, ...turn.calls.map((call) => el("div", { class: "call" }, `→ ${call}`))));
      }
      right.append(heading("Trace"), turns);
    }
    if (sample.metadata) right.append(el("details", { class: "source" }, el("summary", {}, "Other fields of the row"), el("div", { class: "text mono" }, sample.metadata)));
    light(box);
    return box;
  }

  function row(number) {
    const sample = samples[number];
    const node = el("details", { class: "row", id: sample.anchor },
      el("summary", {},
        el("span", { class: `mark ${sample.state}` }, el("i", { "aria-hidden": "true" }, SIGN[sample.state]), sample.score),
        el("span", { class: "name", title: sample.id }, sample.id),
        el("span", { class: "peek" }, sample.peek),
        el("span", { class: "tally" }, sample.tally)));
    node.addEventListener("toggle", () => { if (node.open) fill(node, sample); });
    return node;
  }

  function fill(node, sample) {
    if (node.childElementCount < 2) node.append(body(sample));
  }

  const lower = new Array(samples.length);
  function haystack(number) {
    if (lower[number] === undefined) {
      const sample = samples[number];
      const parts = [sample.id, sample.question || "", ...sample.facts];
      if (sample.response) parts.push(sample.response.map((piece) => piece[0]).join(""));
      for (const item of sample.statements) parts.push(item.text, item.word);
      if (sample.goal) for (const [, text] of sample.goal.facts) parts.push(text);
      if (sample.trace) for (const turn of sample.trace) parts.push(turn.text, ...turn.calls);
      lower[number] = parts.join("\n").toLowerCase();
    }
    return lower[number];
  }

  const orders = {
    risk: [...samples.keys()].sort((a, b) => samples[a].risk - samples[b].risk),
    data: [...samples.keys()],
    call: [...samples.keys()].sort((a, b) => samples[a].call - samples[b].call || a - b),
  };
  let chosen = [], rendered = 0, waiting = 0;

  function extend() {
    const part = document.createDocumentFragment();
    for (const number of chosen.slice(rendered, rendered + STEP)) part.append(row(number));
    list.append(part);
    rendered = Math.min(rendered + STEP, chosen.length);
    more.hidden = rendered >= chosen.length;
    more.textContent = `Show more (${chosen.length - rendered} left)`;
  }

  function apply() {
    clearTimeout(waiting); // else it would close rows that were opened in the meantime, and move the focus
    const show = tools.elements.show.value, name = metric ? metric.value : "";
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = orders[sort.value].filter((number) => {
      const sample = samples[number];
      return (!show || sample.state === show) && (!name || sample.metric === name) && words.every((one) => haystack(number).includes(one));
    });
    list.replaceChildren();
    rendered = 0;
    extend();
    shown.textContent = `${chosen.length} of ${samples.length} samples`;
    all.textContent = "Open all shown";
    if (!chosen.length) list.append(el("p", { class: "empty" }, samples.length ? "No sample matches." : "No samples."));
  }

  function open(hash) {
    const anchor = decodeURIComponent(hash.slice(1));
    const number = samples.findIndex((sample) => anchor === sample.anchor || (anchor.startsWith(`${sample.anchor}.`) && /^\d+$/.test(anchor.slice(sample.anchor.length + 1))));
    if (number < 0) return;
    if (!chosen.includes(number)) {
      tools.reset();
      apply();
    }
    while (!document.getElementById(samples[number].anchor) && rendered < chosen.length) extend();
    const node = document.getElementById(samples[number].anchor);
    node.open = true;
    fill(node, samples[number]);
    const target = document.getElementById(anchor) || node;
    target.scrollIntoView({ block: "start" });
    // Rows above get their true height only when they come near the window.
    requestAnimationFrame(() => requestAnimationFrame(() => target.scrollIntoView({ block: "start" })));
    (target === node ? node.firstElementChild : target.querySelector("a")).focus({ preventScroll: true });
  }

  const later = () => { clearTimeout(waiting); waiting = setTimeout(apply, 80); };
  find.addEventListener("input", later);
  tools.addEventListener("change", (event) => { if (event.target !== find) apply(); });
  tools.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", extend);
  all.addEventListener("click", () => {
    const rows = [...list.querySelectorAll(".row")];
    const opening = rows.some((node) => !node.open);
    for (const node of rows) node.open = opening;
    all.textContent = opening ? "Close all shown" : "Open all shown";
  });
  addEventListener("hashchange", () => open(location.hash));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "radio";
    if (event.key === "Escape" && event.target === find) {
      find.value = "";
      apply();
    } else if (event.key === "/" && !typing) {
      event.preventDefault();
      find.focus();
    } else if ((event.key === "j" || event.key === "k") && !typing) {
      const rows = [...list.querySelectorAll(".row")];
      const at = rows.findIndex((node) => node.contains(document.activeElement));
      if (event.key === "j" && at === rows.length - 1 && !more.hidden) { extend(); rows.push(...[...list.querySelectorAll(".row")].slice(rows.length)); }
      const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))];
      if (next) next.firstElementChild.focus();
    }
  });
  if ("IntersectionObserver" in window) {
    new IntersectionObserver((entries) => { if (entries[0].isIntersecting && rendered) extend(); }, { rootMargin: "600px" }).observe(more);
  }
  tools.hidden = false;
  apply();
  if (location.hash) {
    history.scrollRestoration = "manual";
    open(location.hash);
  }
})();
