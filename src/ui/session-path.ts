/** URL path of a page of a session; "" is the overview. @param key of the session on this server */
export const sessionPath = (key: string, page = ''): string => `/s/${encodeURIComponent(key)}${page}`;
