import { text } from './fetched.js';
import { redraw } from './redraw.js';

// A switch redraws the waterfalls in place: what is open and where the page stands stay as they are.

let asked = 0;

async function show(address: string): Promise<void> {
  const request = ++asked;
  const switches = document.querySelector('#switches')!;
  switches.setAttribute('aria-busy', 'true');
  try {
    const page = new DOMParser().parseFromString(await text(address), 'text/html');
    // A later click has been answered, or will be.
    if (request !== asked) return;
    redraw(page);
  } catch {
    // The server's own page says what is wrong.
    location.href = address;
  }
}

document.addEventListener('click', (click) => {
  const link = (click.target as Element).closest<HTMLAnchorElement>('#switches a');
  if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
  click.preventDefault();
  history.pushState(null, '', link.href);
  void show(link.href);
});
addEventListener('popstate', () => void show(location.href));
