/** An error with the server's text as its message. */
export class ServerError extends Error {}

async function fetchChecked(path: string, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, signal ? { signal } : {});
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    const { what, why, fix } = JSON.parse(text) as Record<string, string>;
    message = [what, why, fix].join(' ');
  } catch {
    // The response is not JSON of our server: keep its text as it is.
  }
  throw new ServerError(message);
}

export async function fetchJson<T>(path: string): Promise<T> {
  return (await (await fetchChecked(path)).json()) as T;
}

export const fetchBytes = async (path: string, signal?: AbortSignal): Promise<ArrayBuffer> =>
  (await fetchChecked(path, signal)).arrayBuffer();

export const fetchText = async (path: string): Promise<string> => (await fetchChecked(path)).text();
