import { kernelFiles } from './kernel-files.js';

/**
 * PCI vendor:device, e.g. 10de:2335, as Linux reports it; null on other systems or if the bus is hidden (virtual
 * machines, some containers).
 * @param busId as NVML reports it: 00000000:1B:00.0
 * @param root folder that contains /sys
 */
export function pciIdOf(busId: string | null, root = '/'): string | null {
  const place = /^(?:0000)?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)$/i.exec(busId ?? '')?.[1];
  if (place === undefined) return null;
  const files = kernelFiles(root);
  const folder = `/sys/bus/pci/devices/${place.toLowerCase()}`;
  const part = (name: string) => /^0x([0-9a-f]{4})\s*$/i.exec(files.text(`${folder}/${name}`) ?? '')?.[1];
  const vendor = part('vendor');
  const device = part('device');
  return vendor && device ? `${vendor}:${device}`.toLowerCase() : null;
}
