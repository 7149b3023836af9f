/** Saves what the page shows as a file without scripts. Links to other pages become text. */
function save(): void {
  const copy = document.documentElement.cloneNode(true) as HTMLElement;
  copy.querySelector('head')!.append(...copy.querySelectorAll('nav.pages style'));
  for (const part of copy.querySelectorAll('script, nav.pages, .tools, [http-equiv]')) part.remove();
  for (const link of copy.querySelectorAll('a[href]:not([href^="#"]):not([href^="http"])'))
    link.removeAttribute('href');
  const file = new Blob([`<!DOCTYPE html>\n${copy.outerHTML}\n`], { type: 'text/html' });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = `${document.title.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-')}.html`;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.querySelector('#save[href="#save"]')?.addEventListener('click', (click) => {
  click.preventDefault();
  save();
});
