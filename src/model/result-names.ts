/** 20261121-093012 in UTC, as in session ids. */
export function stampOf(time: Date): string {
  return time.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
}

/**
 * `<model>-profile_<stamp>.json`. `/` of a hub id becomes `_`, so that models with the same name from two owners differ; for a path the
 * last part is used, for a config.json its folder.
 */
export function profileName(model: string, stamp: string): string {
  const trimmed = model.replaceAll('\\', '/').replace(/\/+$/, '');
  const place = /\.json$/i.test(trimmed)
    ? trimmed.split('/').slice(0, -1).join('/')
    : trimmed.replace(/\.gguf$/i, '');
  const isPath = place !== trimmed || /^[./~]/.test(place) || place.split('/').length > 2;
  const name = (isPath ? (place.split('/').at(-1) ?? '') : place)
    .replaceAll(/[^\w.-]+/g, '_')
    .replaceAll(/^[_.-]+|[_.-]+$/g, '')
    .slice(0, 80);
  return `${name || 'model'}-profile_${stamp}.json`;
}
