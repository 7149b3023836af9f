import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';

/** Whether a host name belongs to this machine: loopback, or an address of one of its interfaces. */
export async function isThisMachine(hostname: string): Promise<boolean> {
  const name = hostname.replace(/^\[|\]$/g, '');
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const localAddresses = new Set(interfaces.map(({ address }) => address));
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.length > 0 && found.every(({ address }) => localAddresses.has(address) || isLoopback(address));
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

/**
 * The process that listens on a TCP port of this machine. Null if none is visible: sockets of other users are visible only to root, and a
 * container has its own network.
 */
export function findListenerPid(port: number): number | null {
  const inodes = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) => listeningInodes(read(path), port));
  if (inodes.length === 0) return null;
  const sockets = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for (const pid of entries('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const fd of entries(`/proc/${pid}/fd`)) {
      if (sockets.has(linkOf(`/proc/${pid}/fd/${fd}`))) return Number(pid);
    }
  }
  return null;
}

/** Lines of /proc/net/tcp: "sl local_address rem_address st … uid timeout inode"; state 0A listens. */
export function listeningInodes(table: string, port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return table.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const [, local = '', , state] = fields;
    return local.endsWith(`:${hex}`) && state === '0A' && fields[9] !== undefined ? [fields[9]] : [];
  });
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function entries(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
