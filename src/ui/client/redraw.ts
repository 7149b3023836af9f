/** Replaces the switches and waterfalls of this page by those of another page and keeps the focus. */
export function redraw(page: Document): void {
  const name = document.activeElement?.closest('#switches a')?.textContent;
  for (const part of ['#switches', '#waterfall']) {
    const [here, there] = [document.querySelector(part), page.querySelector(part)];
    if (!here || !there) throw new Error(`no ${part}`);
    here.replaceWith(document.adoptNode(there));
  }
  document.dispatchEvent(new Event('charts-added'));
  if (name === undefined) return;
  const links = [...document.querySelectorAll<HTMLElement>('#switches a')];
  (links.find(({ textContent }) => textContent === name) ?? links[0])?.focus();
}
