// Countdown, copy, and what each region needs after it was put in place.
// distance and relative say how far away an instant is in the same words as
// the server (parts.Distance, parts.Relative).
function distance(seconds) {
  const minutes = Math.trunc(seconds / 60), hours = Math.trunc(minutes / 60);
  if (minutes < 1) return `${Math.trunc(seconds)} s`;
  if (hours < 1) return `${minutes} min`;
  if (hours >= 48) return `${Math.trunc(hours / 24)} days`;
  return hours < 3 && minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
}

function relative(left) {
  if (Math.abs(left) < 5) return 'now';
  return left < 0 ? `${distance(-left)} ago` : `in ${distance(left)}`;
}

function tick() {
  for (const t of all('time[data-ticks]')) {
    const left = (new Date(t.dateTime) - Date.now()) / 1000;
    const words = relative(left);
    if (t.textContent !== words) t.textContent = words;
    t.closest('.clock').classList.toggle('passed', left < 0);
  }
}

async function copy(control, text) {
  await navigator.clipboard.writeText(text);
  control.classList.add('done');
  say('Copied');
  setTimeout(() => control.classList.remove('done'), 1500);
}

document.addEventListener('click', async (event) => {
  const from = event.target.closest('[data-copy]'), link = event.target.closest('[data-copy-url]');
  if (from) copy(from, from.dataset.copy);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !navigator.clipboard) return;
  event.preventDefault();
  copy(link, await (await fetch(link.href)).text());
  link.textContent = 'copied, exact bytes';
});

const place = document.querySelector('.rail [aria-current]');
place?.scrollIntoView({ block: 'nearest', inline: 'center' });

function enhance(root) {
  if (navigator.clipboard) for (const b of all('.copy[hidden]', root)) b.hidden = false;
  restore(root);
  gate(root);
  tick();
}
