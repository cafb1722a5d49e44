// Live: the stream only says which topic changed. The page is then fetched
// again and its regions are compared, so there is one way to render it.
const sources = new WeakMap(); // region → its HTML as the server sent it
const topics = new Set();
let stream, soon, seen = new Date(), pressed = false;

addEventListener('pointerdown', () => { pressed = true; }, true);
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => { pressed = false; }, true);

function connection(state, text) {
  const p = one('#connection');
  if (!p) return;
  p.hidden = false;
  p.className = `connection is-${state}`;
  one('#connection-text').textContent = text;
}

const stale = () => connection('stale', `stale since ${seen.toLocaleTimeString(document.documentElement.lang, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })}`);

function listen() {
  const url = document.body.dataset.events;
  if (!url || stream) return;
  let lost = false;
  connection('trying', 'connecting');
  stream = new EventSource(url);
  stream.onopen = () => { seen = new Date(); connection('live', 'live'); if (lost) changed('reset'); lost = false; };
  stream.onerror = () => {
    lost = true;
    connection('trying', 'reconnecting');
    setTimeout(() => { if (lost) stale(); }, 15000);
    if (stream.readyState === EventSource.CLOSED) { mute(); setTimeout(listen, 10000); }
  };
  for (const topic of ['approvals', 'runs', 'effects', 'reset']) stream.addEventListener(topic, () => changed(topic));
}

function mute() { stream?.close(); stream = undefined; }

function changed(topic) {
  seen = new Date();
  topics.add(topic);
  soon ??= setTimeout(refresh, 200);
}

async function refresh() {
  const what = new Set(topics);
  topics.clear();
  soon = undefined;
  const answer = await fetch(location.href, { headers: { 'X-Live': '1' } }).catch(() => undefined);
  if (!answer?.ok) return;
  if (new URL(answer.url).pathname === '/signin') return stale();
  const fresh = parse(await answer.text());
  for (const region of all('[data-live]')) {
    if (!what.has('reset') && !region.dataset.live.split(' ').some((t) => what.has(t))) continue;
    const now = fresh.getElementById(region.id);
    if (now && now.outerHTML !== sources.get(region)) update(region, now);
  }
}

// update never takes away what somebody is using.
function update(region, now) {
  if (region.hasAttribute('data-list') && merge(region, now)) return;
  if (region.dataset.digest !== now.dataset.digest) overtaken();
  else if (one('.faulty', region)) return; // what is wrong stays until it is mended
  if (busy(region)) return hold(region, now, 'Changed: show');
  swap(region, now);
}

const busy = (region) => pressed || dirty(region) || region.contains(document.activeElement) || one('.act.armed', region) ||
  one('a:hover, button:hover, summary:hover, label:hover', region) || (!getSelection().isCollapsed && region.contains(getSelection().anchorNode));

function hold(region, now, text) {
  one(':scope > .pill', region)?.remove();
  region.prepend(button(text, () => { swap(region, now); region.tabIndex = -1; region.focus({ preventScroll: true }); }));
}

function swap(region, now) {
  const open = new Set(all('details[open] > summary', region).map((s) => s.textContent));
  const search = one('.search', region);
  sources.set(now, now.outerHTML);
  for (const s of all('details > summary', now)) if (open.has(s.textContent)) s.parentElement.open = true;
  if (search) one('.search', now)?.replaceWith(search);
  region.replaceWith(now);
  enhance(now);
}

// merge refreshes rows in place; new rows wait behind a button. It is false
// when the list may be swapped whole.
function merge(region, now) {
  const old = new Map(all('[data-key]', region).map((r) => [r.dataset.key, r]));
  const rows = all('[data-key]', now);
  const added = rows.filter((r) => !old.has(r.dataset.key)).length;
  const inOrder = rows.map((r) => r.dataset.key).join() === [...old.keys()].join();
  if (!added && !inOrder && !busy(region)) return false;
  for (const row of rows) {
    const was = old.get(row.dataset.key);
    if (was && !was.matches(':hover') && !was.contains(document.activeElement)) was.replaceWith(row.cloneNode(true));
    old.delete(row.dataset.key);
  }
  for (const gone of old.values()) gone.classList.add('gone');
  if (added || !inOrder) hold(region, now, added ? `${added} new` : 'Changed: show');
  else sources.set(region, now.outerHTML);
  if (added) say(`${added} new`);
  return true;
}

document.addEventListener('visibilitychange', () => { if (document.hidden) mute(); else { listen(); changed('reset'); } });
