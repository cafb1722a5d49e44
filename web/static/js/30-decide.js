// Approving has two steps. Without script the second is a page; with it, it
// is shown in place, its button elsewhere and off for a moment, so that a
// double click does not decide.
const settle = 700; // milliseconds

function arm() {
  const act = one('#act');
  one('#choose').hidden = true;
  one('#confirm').hidden = false;
  act.classList.add('armed');
  const confirm = one('#confirm-button');
  confirm.disabled = true;
  setTimeout(() => { confirm.disabled = false; }, settle);
  one('#confirm-title').focus({ preventScroll: true });
}

// disarm puts the focus before the buttons, on none of them: the key that
// disarmed would press it.
function disarm(focus = true) {
  const act = one('#act.armed');
  if (!act) return false;
  one('#choose').hidden = false;
  one('#confirm').hidden = true;
  act.classList.remove('armed');
  if (focus) one('#choose').focus({ preventScroll: true });
  return true;
}

// overtaken: what is on screen is no longer what would be decided.
function overtaken() {
  disarm(false);
  for (const b of all('#arm, #confirm-button')) b.disabled = true;
  const gate = one('#gate');
  if (gate) { gate.hidden = false; gate.textContent = 'This request changed since you opened it. Show the change before you decide.'; }
}

// gate keeps Approve off until every folded value was opened.
function gate(root = document) {
  const left = all('[data-must-open] [data-fold]:not([open], [data-seen])').length;
  const note = one('#gate'), button = one('#arm');
  if (!note || !button || !one('[data-must-open]', root)) return;
  button.disabled = left > 0;
  note.hidden = left === 0;
  note.textContent = left === 1 ? 'One value above is still folded: open it before you approve.' : `${left} values above are still folded: open them before you approve.`;
}

document.addEventListener('toggle', ({ target }) => {
  if (target.matches?.('[data-fold]') && target.open) { target.dataset.seen = ''; gate(); }
}, true);
document.addEventListener('submit', (event) => {
  if (!event.target.matches('[data-arm]')) return;
  event.preventDefault();
  if (!one('#arm').disabled) arm();
});
document.addEventListener('click', (event) => {
  if (event.target.closest('#disarm') && disarm()) event.preventDefault();
});
document.addEventListener('input', ({ target }) => { if (!target.closest('#confirm')) disarm(false); });
addEventListener('pageshow', ({ persisted }) => { if (persisted) { disarm(false); changed('reset'); } });
