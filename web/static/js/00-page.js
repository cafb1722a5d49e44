// The files of this folder are joined, in the order of their names, into one
// module. Every page works without it.
const policy = globalThis.trustedTypes?.createPolicy('countersign', { createHTML: (html) => html });
const parse = (html) => new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, 'text/html');
const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => { one('#say').textContent = text; };
const typing = (node) => node?.matches?.('input:not([type=radio],[type=checkbox]), select, textarea, [contenteditable]');
const dirty = (root) => all('textarea, input[type=text], input[type=password]', root).some((f) => !f.readOnly && f.value !== f.defaultValue);

function button(text, act) {
  const b = document.createElement('button');
  b.type = 'button';
  b.className = 'pill';
  b.textContent = text;
  b.addEventListener('click', act);
  return b;
}
