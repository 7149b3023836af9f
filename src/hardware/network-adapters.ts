import { type Figure, figure, missing } from '../model/figure.js';

/** The fastest link of one port of a network adapter, 10^9 bits per second. */
interface NetworkAdapter {
  name: string;
  gbitPerS: number;
}

/**
 * By PCI vendor:device, in hexadecimal. Ids: Linux, drivers/net/ethernet/mellanox/mlx5/core/main.c; rates: uplink
 * speeds of "NVIDIA MLNX_OFED Documentation v24.10 LTS" (2025), for ConnectX-8 "NVIDIA ConnectX-8 SuperNIC" (2025). A
 * port may run slower.
 */
const adapters: Readonly<Record<string, NetworkAdapter>> = {
  '15b3:1017': { name: 'ConnectX-5', gbitPerS: 100 },
  '15b3:1019': { name: 'ConnectX-5 Ex', gbitPerS: 100 },
  '15b3:101b': { name: 'ConnectX-6', gbitPerS: 200 },
  '15b3:101d': { name: 'ConnectX-6 Dx', gbitPerS: 200 },
  '15b3:101f': { name: 'ConnectX-6 Lx', gbitPerS: 50 },
  '15b3:1021': { name: 'ConnectX-7', gbitPerS: 400 },
  '15b3:1023': { name: 'ConnectX-8', gbitPerS: 800 },
  '15b3:a2d6': { name: 'BlueField-2', gbitPerS: 200 },
  '15b3:a2dc': { name: 'BlueField-3', gbitPerS: 400 },
};

/**
 * Bandwidth of all network adapters of a host in one direction, B/s: a ring over several hosts leaves each host through
 * every adapter once.
 * @param ids vendor:device of each adapter
 */
export function hostNetworkLink(ids: readonly string[]): Figure {
  if (ids.length === 0) return missing('no_network', 'no capture names the network adapters of the host');
  const unknown = ids.find((id) => adapters[id] === undefined);
  if (unknown !== undefined)
    return missing('unknown_network', `the rate of a network adapter is not known: PCI id ${unknown}`);
  const bits = ids.reduce((sum, id) => sum + adapters[id]!.gbitPerS, 0);
  const names = [...new Set(ids.map((id) => adapters[id]!.name))].join(', ');
  return figure((bits * 1e9) / 8, 'B/s', `${ids.length} × ${names}, MLNX_OFED Documentation (2025)`);
}
