/** Marks the section being read in the table of contents. */
export function followSections(document: Document): void {
  const links = new Map<string, Element>();
  for (const link of document.querySelectorAll('nav.contents a')) {
    links.set((link.getAttribute('href') ?? '').slice(1), link);
  }
  const visible = new Set<string>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) visible.add(target.id);
        else visible.delete(target.id);
      }
      const current = [...links.keys()].find((id) => visible.has(id));
      if (!current) return;
      for (const [id, link] of links) {
        if (id === current) link.setAttribute('aria-current', 'location');
        else link.removeAttribute('aria-current');
      }
    },
    { rootMargin: '-10% 0px -60% 0px' },
  );
  for (const id of links.keys()) {
    const section = document.querySelector(`#${CSS.escape(id)}`);
    if (section) observer.observe(section);
  }
}
