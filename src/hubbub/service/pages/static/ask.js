// The page Ask, livelier: an editor instead of the textarea, and the price 300 ms after the last key.
// Without this file the page works as plain forms. What is shown is made by the service; nothing is computed here.

const PAUSE = 300;
const form = document.getElementById("question");
const field = document.getElementById("sql");
const place = document.getElementById("editor");
let editor = null;
let timer = 0;
let last = 0;

document.documentElement.classList.add("js");

function show(name, fresh) {
  const old = document.getElementById(name);
  const held = old.contains(document.activeElement);
  for (const { name: key } of [...old.attributes]) if (key.startsWith("data-")) old.removeAttribute(key);
  for (const { name: key, value } of fresh.attributes) if (key.startsWith("data-")) old.setAttribute(key, value);
  old.replaceChildren(...fresh.childNodes);
  old.removeAttribute("aria-busy");
  if (held) old.querySelector("button:not(.nojs), a")?.focus();
}

function underline() {
  const { start, end, why } = document.getElementById("line").dataset;
  if (!editor) return;
  if (start === undefined) editor.clear();
  else {
    // Python counts characters, JavaScript halves of some of them.
    const letters = [...editor.text()];
    const at = (n) => letters.slice(0, n).join("").length;
    editor.underline(at(Number(start)), at(Number(end)), why);
  }
}

// The amount and the accuracy go together: of the two the one that was not chosen follows.
function follow() {
  const { epsilon, width, within, proposed } = document.getElementById("line").dataset;
  if (epsilon === undefined) return;
  const own = form.elements.mode.value === "within";
  if (own) {
    if (form.elements.within.value === form.elements.proposed.value) form.elements.within.value = within;
    form.elements.proposed.value = proposed;
    if (epsilon) form.elements.spend.value = epsilon;
  } else {
    form.elements.within.value = width;
    form.elements.most.value = form.elements.spend.value;
  }
}

async function price() {
  const mine = ++last;
  if (!field.value.trim()) return;
  for (const name of ["line", "drawing"]) document.getElementById(name).setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = await fetch(form.dataset.line, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  } catch {
    answer = null;
  }
  if (mine !== last) return;
  if (answer === null || answer.status === 429 || answer.status === 503) {
    timer = setTimeout(price, 1000);
    return;
  }
  if (answer.status === 401) {
    location.assign("/login?ended=1");
    return;
  }
  const told = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== last) return;
  for (const name of ["line", "drawing"]) {
    const fresh = told.getElementById(name);
    if (fresh) show(name, fresh);
  }
  follow();
  underline();
}

function later() {
  clearTimeout(timer);
  last += 1; // what is on its way is of an older question
  document.getElementById("line").querySelectorAll("button:not(.second)").forEach((b) => { b.disabled = true; });
  timer = setTimeout(price, PAUSE);
}

form.addEventListener("input", (event) => {
  const mode = { within: "within", most: "within", spend: "spend" }[event.target.name];
  if (mode) form.elements.mode.value = mode; // who types an amount means it
  later();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const button = document.querySelector("#line button:not(.second):not([disabled])");
    if (button) form.requestSubmit(button);
  }
});

function insert(text) {
  if (editor) editor.insert(text);
  else {
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    field.focus();
  }
  later();
}

for (const name of document.querySelectorAll("[data-insert]")) {
  name.setAttribute("role", "button");
  name.setAttribute("tabindex", "0");
  name.setAttribute("aria-label", `insert ${name.dataset.insert}`);
  const press = (event) => {
    event.preventDefault();
    event.stopPropagation();
    insert(name.dataset.insert);
  };
  name.addEventListener("click", press);
  name.addEventListener("keydown", (event) => (event.key === "Enter" || event.key === " ") && press(event));
}

try {
  const { open } = await import(place.dataset.editor);
  const names = Object.fromEntries([...document.querySelectorAll("[data-table]")].map((table) =>
    [table.dataset.table, [...table.querySelectorAll("li [data-insert]")].map((column) => column.dataset.insert)]));
  editor = open({
    parent: place,
    text: field.value,
    names,
    nonce: document.getElementById("editor-style").nonce,
    changed: (text) => { field.value = text; later(); },
  });
  const typing = document.activeElement === field;
  place.hidden = false;
  field.hidden = true;
  if (typing) editor.focus(); // whoever was faster than the editor goes on in it
  field.required = false; // a hidden field cannot say that it is empty; the service does
  document.querySelector("label[for=sql]").addEventListener("click", () => editor.focus());
  underline();
} catch {
  // The textarea stays.
}
