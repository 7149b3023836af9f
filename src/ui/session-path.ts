/** Of a session's page: "" is its overview. */
export const sessionPath = (id: string, page = ''): string => `/s/${encodeURIComponent(id)}${page}`;
