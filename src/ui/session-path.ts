/** Of a session's page: "" is its overview. @param key of the session among those of the server */
export const sessionPath = (key: string, page = ''): string => `/s/${encodeURIComponent(key)}${page}`;
