"use strict";
// Draws the pictures of the report from the numbers embedded in the page, and hands those numbers out as files.
// Nothing is fetched. All text is set as text, never as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = 8;
const MOST_NODES = 16; // states of one step that are drawn
const LEAST_SHARE = 0.005; // of the moves of one step that a move must be to be drawn

const find = (id) => document.getElementById(id);
/** The colour of a state or agent by its number; a dropped state has the last one. */
const colour = (name) => (Number.isNaN(parseInt(name, 10)) ? COLOURS - 1 : parseInt(name, 10) % COLOURS);
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`);
const unique = (values) => [...new Set(values)];

/** The rows of a table as objects, one key for each column. */
function records(name) {
  const { columns, rows } = data.tables[name];
  return rows.map((row) => Object.fromEntries(row.map((value, i) => [columns[i], value])));
}

/** An element with attributes, of HTML or of SVG, and its children or text. */
function make(namespace, name, attributes = {}, ...children) {
  const element = namespace === "svg" ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
const svg = (name, attributes, ...children) => make("svg", name, attributes, ...children);
const html = (name, attributes, ...children) => make("html", name, attributes, ...children);

/** A picture that screen readers announce by its label; what is in it is said in the tables. */
function picture(width, height, label) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

/** Fill a choice with [value, text] pairs, keep what was chosen where it still exists, and call back on changes. */
function fill(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => html("option", { value }, String(text))));
  if (options.some(([value]) => String(value) === before)) select.value = before;
  select.closest("label").hidden = options.length < 2;
}

function choose(select, options, changed) {
  fill(select, options);
  select.addEventListener("change", changed);
}

// -- states over time --------------------------------------------------------------------------------------------

const moves = records("transitions");
const visits = records("visits");

/** How often a row's move was made, or its state visited: by one agent, or by all of them (""). */
function count(row, kind, agent) {
  const whose = agent === "" ? data.moves_of : [agent];
  return whose.reduce((sum, name) => sum + row[`${kind} of ${name}`], 0);
}

function drawTime() {
  const agent = find("time-agent").value;
  const steps = unique(visits.map((row) => row.h));
  const places = new Map();
  let rows = 1, hidden = 0;
  for (const h of steps) {
    const here = visits.filter((row) => row.h === h).sort((a, b) => count(b, "visits", "") - count(a, "visits", ""));
    const kept = here.slice(0, MOST_NODES).sort((a, b) => a.state - b.state);
    hidden += here.length - kept.length;
    rows = Math.max(rows, kept.length);
    kept.forEach((row, i) => places.set(`${h} ${row.state}`, { row, i, of: kept.length }));
  }
  if (data.stationary) rows = alignRows(places);
  const across = 84, down = 46, left = 40, top = 44;
  const width = left * 2 + across * (steps.length - 1), height = top + down * rows + 8;
  const canvas = picture(width, height, `${places.size} states at ${steps.length} steps and the moves between them; the same numbers are in the tables below.`);
  const x = (h) => left + across * (h - steps[0]);
  const y = (place) => top + down * (rows * (place.i + 0.5)) / place.of;
  for (const h of steps) canvas.append(svg("text", { x: x(h), y: 16, "text-anchor": "middle", class: "tick" }, steps.length > 12 ? `${h}` : `step ${h}`));
  const total = new Map();
  for (const row of moves) total.set(row.h, (total.get(row.h) || 0) + count(row, "moves", agent));
  for (const row of moves) {
    const from = places.get(`${row.h} ${row.state}`), to = places.get(`${row.h + 1} ${row["next state"]}`);
    const share = count(row, "moves", agent) / Math.max(1, total.get(row.h));
    if (!from || !to || share < LEAST_SHARE) continue;
    const [a, b, mid] = [x(row.h), x(row.h + 1), x(row.h) + across / 2];
    const line = svg("path", {
      d: `M${a} ${y(from)}C${mid} ${y(from)} ${mid} ${y(to)} ${b} ${y(to)}`,
      class: "move", "stroke-width": (0.8 + 13 * share).toFixed(2), "stroke-opacity": (0.25 + 0.45 * share).toFixed(2),
    });
    line.append(svg("title", {}, `step ${row.h}: state ${row.state} to ${row["next state"]}, ${percent(share)} of the moves`));
    canvas.append(line);
  }
  const most = Math.max(1, ...visits.map((row) => count(row, "visits", agent)));
  for (const [key, place] of places) {
    const seen = count(place.row, "visits", agent), radius = 4 + 13 * Math.sqrt(seen / most);
    const at = { cx: x(place.row.h), cy: y(place), r: radius.toFixed(1), class: `node f${colour(place.row.state)}` };
    const inside = radius > 9;
    const name = svg("text", { x: at.cx + (inside ? 0 : radius + 3), y: at.cy + 4, class: inside ? "node-name" : "beside" }, `${place.row.state}`);
    canvas.append(svg("g", {}, svg("title", {}, `state ${place.row.state} at step ${place.row.h}: ${seen} trajectories`), svg("circle", at), name));
  }
  find("time-picture").replaceChildren(canvas);
  find("time-note").textContent = hidden ? `${hidden} rarer states are not drawn: the ${MOST_NODES} most visited of each step are.` : "";
}

/** One row for each state, the same at every step, where a number means the same at every step. */
function alignRows(places) {
  const states = unique([...places.values()].map((place) => place.row.state)).sort((a, b) => a - b);
  for (const place of places.values()) Object.assign(place, { i: states.indexOf(place.row.state), of: states.length });
  return states.length;
}

// -- how the agents differ ---------------------------------------------------------------------------------------

function drawAgents() {
  const h = Number(find("agents-h").value), known = data.moves_of.length > 1, rows = known ? moves : clusters;
  fill(find("agents-state"), unique(rows.filter((row) => row.h === h).map((row) => row.state)).map((s) => [s, s]));
  const state = find("agents-state").value;
  const mine = rows.filter((row) => row.h === h && String(row.state) === state);
  if (known) drawShares(mine, h, state); else drawOdds(mine, h, state);
}

function showTable(caption, heads, body) {
  const head = html("tr", {}, ...heads.map((text) => html("th", { scope: "col" }, text)));
  const table = html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...body));
  find("agents-picture").replaceChildren(html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Moves of each agent" }, table));
}

function drawShares(rows, h, state) {
  const body = rows.map((row) => html("tr", {}, html("th", { scope: "row" }, `${row["next state"]}`), ...data.moves_of.map((name, k) => shareCell(row, name, k))));
  const caption = `From state ${state} at step ${h}: share of each agent's visits that move on to each next state, and number of moves.`;
  showTable(caption, [`next state, at step ${h + 1}`, ...data.moves_of], body);
  find("agents-note").textContent = difference(rows, h, state);
}

/** Without data: the clusters of a state, each with the odds of two agents. */
function drawOdds(rows, h, state) {
  const pair = find("agents-pair").value, first = data.agents[0], second = data.agents[1 + data.pairs.indexOf(pair)];
  const mine = rows.filter((row) => row.agents === pair);
  const odds = (v) => (v === null ? "–" : v >= 0 ? `${Math.exp(v).toFixed(1)} times as often by ${first}` : `${Math.exp(-v).toFixed(1)} times as often by ${second}`);
  const body = mine.map((row) => html("tr", {}, html("th", { scope: "row" }, `${row["next state"]}`), html("td", {}, odds(row["mean log-odds"])), html("td", { class: "number" }, `${row["mean log-odds"]?.toFixed(2) ?? "–"}`), html("td", { class: "number" }, `${row.pairs}`)));
  showTable(`From state ${state} at step ${h}: ${pair}.`, [`next state, at step ${h + 1}`, "made", "log-odds", "moves"], body);
}

function shareCell(row, name, k) {
  const share = row[`share of ${name}`];
  const bar = html("span", { class: `bar b${colour(k)}` });
  bar.style.width = `${100 * (share || 0)}%`;
  return html("td", { class: "share" }, `${percent(share)} (${row[`moves of ${name}`]})`, html("span", { class: "track", "aria-hidden": "true" }, bar));
}

/** The two agents that differ most in a state, by the share of moves that would have to change (total variation). */
function difference(rows, h, state) {
  let best = null;
  data.moves_of.forEach((a, i) => data.moves_of.slice(i + 1).forEach((b) => {
    const apart = rows.reduce((sum, row) => sum + Math.abs((row[`share of ${a}`] ?? NaN) - (row[`share of ${b}`] ?? NaN)), 0) / 2;
    if (Number.isFinite(apart) && (best === null || apart > best.apart)) best = { a, b, apart };
  }));
  if (best === null) return `In state ${state} at step ${h} only one agent was seen, so that there is nothing to compare.`;
  const most = data.moves_of.length > 2 ? "differ most" : "differ";
  return `In state ${state} at step ${h}, ${best.a} and ${best.b} ${most}: ${percent(best.apart)} of the moves of one would have to change to match the other's.`;
}

// -- spectra -----------------------------------------------------------------------------------------------------

const bars = records("spectra");
const clusters = records("clusters");

function drawSpectrum() {
  const h = Number(find("spectra-h").value);
  fill(find("spectra-state"), unique(bars.filter((row) => row.h === h).map((row) => row.state)).map((s) => [s, s]));
  const [state, pair] = [find("spectra-state").value, find("spectra-pair").value];
  const mine = (row) => row.h === h && row.state === state && row.agents === pair;
  const shown = bars.filter(mine), found = clusters.filter(mine);
  const many = found.length === 1 ? "1 cluster" : `${found.length} clusters`;
  const label = `Spectrum of f at step ${h} from state ${state}, ${pair}: ${many}.`;
  find("spectra-picture").replaceChildren(spectrum(shown, found, data.scan ? data.thresholds[h - 1] : null, label));
  const parts = found.map((c) => `state ${c["next state"]} (${c.pairs} pairs around ${c["mean log-odds"]?.toFixed(2) ?? "–"})`);
  const became = parts.length ? `Next states: ${parts.join(", ")}.` : "No bar is heavy enough.";
  const heavy = data.scan ? ` A bar is heavy from ${data.thresholds[h - 1].toFixed(1)} pairs on.` : "";
  find("spectra-note").textContent = `${label} ${became}${heavy}`;
}

function spectrum(shown, found, threshold, label) {
  const wide = Math.max(320, Math.min(820, find("spectra-picture").clientWidth || 820)), high = 300;
  const box = { left: 52, right: wide - 14, top: 40, bottom: high - 46 };
  const step = data.bin_width;
  const ends = [...shown.map((row) => row["log-odds"]), ...found.flatMap((c) => [c.from, c.to]), 0];
  const [low, top] = [Math.min(...ends) - 2 * step, Math.max(...ends) + 2 * step];
  const most = Math.max(threshold ?? 0, 1, ...shown.map((row) => row.pairs)) * 1.08;
  const x = (value) => box.left + ((value - low) / (top - low)) * (box.right - box.left);
  const y = (value) => box.bottom - (value / most) * (box.bottom - box.top);
  const canvas = picture(wide, high, label);
  for (const tick of ticks(0, most, 4)) {
    canvas.append(svg("line", { x1: box.left, x2: box.right, y1: y(tick), y2: y(tick), class: "rule" }));
    canvas.append(svg("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end", class: "tick" }, `${tick}`));
  }
  for (const c of found) canvas.append(svg("rect", { ...between(x(c.from - step / 2), x(c.to + step / 2)), y: box.top, height: box.bottom - box.top, class: `shade f${colour(c["next state"])}` }));
  for (const row of shown) {
    const inside = found.find((c) => c.from - step / 4 <= row["log-odds"] && row["log-odds"] <= c.to + step / 4);
    const kind = inside ? `f${colour(inside["next state"])}` : "loose";
    const bar = svg("rect", { ...between(x(row["log-odds"] - 0.4 * step), x(row["log-odds"] + 0.4 * step)), y: y(row.pairs), height: box.bottom - y(row.pairs), class: kind });
    bar.append(svg("title", {}, `log-odds ${row["log-odds"]}: ${row.pairs} pairs`));
    canvas.append(bar);
  }
  for (const c of found) canvas.append(svg("text", { x: x((c.from + c.to) / 2), y: box.top - 8, "text-anchor": "middle", class: "beside" }, `state ${c["next state"]}`));
  if (threshold !== null) canvas.append(svg("line", { x1: box.left, x2: box.right, y1: y(threshold), y2: y(threshold), class: "threshold" }));
  canvas.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "base" }));
  for (const tick of ticks(low, top, 7)) canvas.append(svg("text", { x: x(tick), y: box.bottom + 17, "text-anchor": "middle", class: "tick" }, `${tick}`));
  canvas.append(svg("text", { x: (box.left + box.right) / 2, y: high - 6, "text-anchor": "middle", class: "axis-name" }, "log-odds"));
  canvas.append(svg("text", { x: 4, y: 14, class: "axis-name" }, "pairs"));
  return canvas;
}

const between = (a, b) => ({ x: a.toFixed(2), width: Math.max(0.5, b - a).toFixed(2) });

/** Round numbers between two ends, about so many. */
function ticks(low, top, about) {
  const rough = (top - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const out = [];
  for (let i = Math.ceil(low / step); i * step <= top; i += 1) out.push(Number((i * step).toPrecision(6)));
  return out;
}

// -- what each state looks like, and files -----------------------------------------------------------------------

function showStep() {
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.dataset.h !== find("states-h").value;
}

/** A cell of a CSV file: quoted where it must be. */
function cell(value) {
  const text = value === null ? "" : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv(name) {
  const { columns, rows } = data.tables[name];
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function save(name, text, type) {
  const link = html("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function start() {
  const all = data.moves_of.length > 1 ? [["", "all agents"]] : [];
  choose(find("time-agent"), [...all, ...data.moves_of.map((name) => [name, name])], drawTime);
  drawTime();
  choose(find("agents-h"), unique((data.moves_of.length > 1 ? moves : clusters).map((row) => row.h)).map((h) => [h, h]), drawAgents);
  choose(find("agents-state"), [], drawAgents);
  if (find("agents-pair")) choose(find("agents-pair"), data.pairs.map((pair) => [pair, pair]), drawAgents);
  drawAgents();
  choose(find("spectra-h"), unique(bars.map((row) => row.h)).map((h) => [h, h]), drawSpectrum);
  choose(find("spectra-state"), [], drawSpectrum);
  choose(find("spectra-pair"), data.pairs.map((pair) => [pair, pair]), drawSpectrum);
  if (bars.length) drawSpectrum();
  if (find("states-h")) {
    choose(find("states-h"), [...document.querySelectorAll(".panel")].map((panel) => [panel.dataset.h, panel.dataset.h]), showStep);
    showStep();
  }
  for (const button of document.querySelectorAll("[data-csv]")) button.addEventListener("click", () => save(`${button.dataset.csv}.csv`, csv(button.dataset.csv), "text/csv"));
  for (const button of document.querySelectorAll("[data-json]")) button.addEventListener("click", () => save("report.json", JSON.stringify(data), "application/json"));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width && bars.length) { width = window.innerWidth; drawSpectrum(); } });
}

start();
