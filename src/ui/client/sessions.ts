import { fetchText } from './fetch.js';

const list = document.querySelector<HTMLElement>('#list')!;
const filter = document.querySelector<HTMLInputElement>('#filter')!;

function hideOthers(): void {
  const wanted = filter.value.trim().toLowerCase();
  for (const row of list.querySelectorAll<HTMLElement>('tbody tr'))
    row.hidden = !(row.textContent ?? '').toLowerCase().includes(wanted);
}
filter.addEventListener('input', hideOthers);

/** Selected sessions, two at most: a third replaces the one selected first. */
let chosen: string[] = [];
list.addEventListener('change', (change) => {
  const box = change.target as HTMLInputElement;
  chosen = chosen.filter((id) => id !== box.value);
  if (box.checked) chosen.push(box.value);
  chosen = chosen.slice(-2);
  checkChosen();
});
function checkChosen(): void {
  for (const box of list.querySelectorAll<HTMLInputElement>('input[name=s]'))
    box.checked = chosen.includes(box.value);
}

// The list is newest first; a comparison goes from the older session to the newer one.
list.closest('form')!.addEventListener('formdata', ({ formData }) => {
  const keys = formData.getAll('s').toReversed();
  formData.delete('s');
  for (const key of keys) formData.append('s', key);
});

// Polls for new sessions.
const pauseMs = 3000;
let lastList = '';
async function follow(): Promise<void> {
  for (; ; await new Promise((resolve) => setTimeout(resolve, pauseMs))) {
    if (document.hidden) continue;
    try {
      const newList = await fetchText('/sessions');
      if (lastList !== '' && newList !== lastList) {
        // HTML rendered and escaped by the server.
        list.innerHTML = newList;
        checkChosen();
        hideOthers();
      }
      lastList = newList;
    } catch {
      // The server is gone or restarting: try again at the next poll.
    }
  }
}
void follow();
