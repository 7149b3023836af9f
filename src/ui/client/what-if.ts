import { fetchText } from './fetch.js';
import { redraw } from './redraw.js';

// A switch redraws only the waterfalls: opened details and the scroll position stay.

let latest = 0;

async function show(address: string): Promise<void> {
  const request = ++latest;
  const switches = document.querySelector('#switches')!;
  switches.setAttribute('aria-busy', 'true');
  try {
    const page = new DOMParser().parseFromString(await fetchText(address), 'text/html');
    // A later click will show its own result.
    if (request !== latest) return;
    redraw(page);
    document.querySelector('#save')?.setAttribute('href', page.querySelector('#save')!.getAttribute('href')!);
  } catch {
    // Opens the server's page, which states the error.
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
