// Countdown, copy, and what each region needs after it was put in place.
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { style: 'short' });

function tick() {
  for (const t of all('time[data-ticks]')) {
    const left = (new Date(t.dateTime) - Date.now()) / 1000;
    const [unit, size] = Math.abs(left) < 120 ? ['second', 1] : Math.abs(left) < 7200 ? ['minute', 60] : Math.abs(left) < 172800 ? ['hour', 3600] : ['day', 86400];
    t.textContent = relative.format(Math.trunc(left / size), unit);
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
