import { servedSource } from './source.js';
import { showTimeline } from './timeline.js';

const { api = '', execution = '' } = document.body.dataset;
document.querySelector('#execution')?.addEventListener('change', (change) => {
  location.search = `?execution=${encodeURIComponent((change.target as HTMLSelectElement).value)}`;
});
showTimeline(servedSource(api, execution));
