import { text } from './fetched.js';

const list = document.querySelector<HTMLElement>('#list')!;
const filter = document.querySelector<HTMLInputElement>('#filter')!;

function hideOthers(): void {
  const wanted = filter.value.trim().toLowerCase();
  for (const row of list.querySelectorAll<HTMLElement>('tbody tr'))
    row.hidden = !(row.textContent ?? '').toLowerCase().includes(wanted);
}
filter.addEventListener('input', hideOthers);

/** Two at most are compared: a third takes the place of the one chosen first. */
let chosen: string[] = [];
list.addEventListener('change', (change) => {
  const box = change.target as HTMLInputElement;
  chosen = chosen.filter((id) => id !== box.value);
  if (box.checked) chosen.push(box.value);
  chosen = chosen.slice(-2);
  check();
});
function check(): void {
  for (const box of list.querySelectorAll<HTMLInputElement>('input[name=s]'))
    box.checked = chosen.includes(box.value);
}

// New sessions appear while the page is looked at.
const pauseMs = 3000;
let before = '';
async function follow(): Promise<void> {
  for (; ; await new Promise((resolve) => setTimeout(resolve, pauseMs))) {
    if (document.hidden) continue;
    try {
      const now = await text('/sessions');
      if (before !== '' && now !== before) {
        // The server's own rendering, escaped there.
        list.innerHTML = now;
        check();
        hideOthers();
      }
      before = now;
    } catch {
      // The server has gone, or will be back.
    }
  }
}
void follow();
