import { text } from './fetched.js';

// A switch redraws the waterfalls in place: what is open and where the page stands stay as they are.

let asked = 0;

async function show(address: string): Promise<void> {
  const own = ++asked;
  const switches = document.querySelector('#switches')!;
  switches.setAttribute('aria-busy', 'true');
  try {
    const page = new DOMParser().parseFromString(await text(address), 'text/html');
    // A later click has been answered, or will be.
    if (own !== asked) return;
    for (const part of ['#switches', '#waterfall']) {
      const [here, there] = [document.querySelector(part), page.querySelector(part)];
      if (!here || !there) throw new Error(`no ${part}`);
      here.replaceWith(document.adoptNode(there));
    }
    document.dispatchEvent(new Event('charts-added'));
  } catch {
    // The server's own page says what is wrong.
    location.href = address;
  }
}

/** The switch that was pressed keeps the focus. */
async function showAndFocus(address: string, name: string): Promise<void> {
  await show(address);
  const links = [...document.querySelectorAll<HTMLElement>('#switches a')];
  (links.find(({ textContent }) => textContent === name) ?? links[0])?.focus();
}

document.addEventListener('click', (click) => {
  const link = (click.target as Element).closest<HTMLAnchorElement>('#switches a');
  if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
  click.preventDefault();
  history.pushState(null, '', link.href);
  const name = link.textContent ?? '';
  void showAndFocus(link.href, name);
});
addEventListener('popstate', () => void show(location.href));
