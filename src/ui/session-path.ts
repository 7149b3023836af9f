/** URL path of a page of a session; "" is the overview. @param key of the session on this server */
export const sessionPath = (key: string, page = ''): string => `/s/${encodeURIComponent(key)}${page}`;

/** Path of the comparison of sessions, the first one against the others. */
export const comparePath = (sessions: readonly { key: string }[]): string =>
  `/compare?${sessions.map(({ key }) => `s=${encodeURIComponent(key)}`).join('&')}`;
