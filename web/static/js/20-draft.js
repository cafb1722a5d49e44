// What is typed is kept in this tab until it is sent: a reload, a crash or a
// signed-out session loses nothing. Passwords are never kept.
const draftOf = (field) => {
  const holder = field.closest('[data-draft]');
  return holder && field.name && `draft ${location.pathname} ${holder.dataset.draft} ${field.name}`;
};

function restore(root) {
  for (const field of all('[data-draft] textarea, [data-draft] input[type=text]', root)) {
    const kept = sessionStorage.getItem(draftOf(field));
    if (kept !== null && field.value === field.defaultValue && !field.readOnly) {
      field.value = kept;
      field.closest('details')?.setAttribute('open', '');
    }
    mark(field);
  }
}

function mark(field) {
  if ('original' in field.dataset) field.closest('.field').classList.toggle('changed', field.value !== field.dataset.original);
}

document.addEventListener('input', ({ target }) => {
  if (!target.matches('textarea, input[type=text]')) return;
  const key = draftOf(target);
  if (key) sessionStorage.setItem(key, target.value);
  mark(target);
});

document.addEventListener('submit', ({ target }) => {
  if (target.method !== 'post' || !navigator.onLine) return;
  for (const field of all('textarea, input[type=text]', target)) if (draftOf(field)) sessionStorage.removeItem(draftOf(field));
});
