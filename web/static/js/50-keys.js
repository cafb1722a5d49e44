// The keyboard, off while somebody types. No single key decides anything.
const rows = () => all('[data-row]').filter((r) => r.offsetParent !== null);
let going = 0;

function move(step) {
  const list = rows();
  const at = list.indexOf(document.activeElement);
  const from = at >= 0 ? at : list.findIndex((r) => r.getAttribute('aria-current'));
  (list[Math.max(0, Math.min(list.length - 1, from + step))] ?? list[0])?.focus();
}

function openPanel(selector) {
  const panel = one(selector);
  if (!panel) return;
  disarm(false);
  panel.open = true;
  one('textarea', panel)?.focus();
}

const does = {
  j: () => move(1),
  k: () => move(-1),
  '/': () => one('[data-search]')?.focus(),
  a: () => { const b = one('#arm'); if (b && !b.disabled) { b.scrollIntoView({ block: 'nearest' }); arm(); } },
  r: () => openPanel('#reject'),
  e: () => one('#edit')?.click(),
  c: () => one('.remark textarea')?.focus(),
  '[': () => one('[data-older]')?.click(),
  ']': () => one('[data-newer]')?.click(),
  y: () => one('[data-digest-copy] .copy')?.click(),
  '?': () => one('#keys')?.showModal(),
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === 'Escape') { if (!disarm() && typing(event.target)) event.target.blur(); return; }
  if (typing(event.target) || one('dialog[open]')) return;
  if (event.key === 'Enter' && event.shiftKey && one('#act.armed')) { event.preventDefault(); if (!event.repeat) one('#confirm-button').click(); return; }
  const place = Date.now() - going < 1200 && one(`.rail [data-go="${CSS.escape(event.key)}"]`);
  going = event.key === 'g' ? Date.now() : 0;
  if (place) { event.preventDefault(); place.click(); return; }
  if (does[event.key]) { event.preventDefault(); does[event.key](); }
});
document.addEventListener('click', (event) => {
  if (event.target.closest('[data-keys]') && !event.ctrlKey) { event.preventDefault(); does['?'](); }
});

for (const region of all('[data-live]')) sources.set(region, region.outerHTML);
enhance(document);
listen();
setInterval(tick, 1000);
