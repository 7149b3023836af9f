import { binsPerTile, tileAt, type LaneRecord } from '../timeline/tile-format.js';
import type { TimelineSource } from './source.js';

export interface Tile {
  level: number;
  tile: number;
  /** ns after the start of the timeline. */
  start: number;
  width: number;
  lanes: Map<number, LaneRecord[]>;
}

/** Maximum cached tiles; those not drawn for longest are dropped first. */
const maxTiles = 300;

/** Cache of timeline tiles, each fetched when it is first drawn. */
export class Tiles {
  private readonly tiles = new Map<string, Tile | 'requested'>();

  constructor(
    private readonly source: Pick<TimelineSource, 'tile'>,
    private readonly onTile: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** The level at which a bin is one to two pixels wide. */
  static level(nsPerPixel: number): number {
    return Math.max(0, Math.ceil(Math.log2(nsPerPixel)));
  }

  /** Drops all tiles after new lanes arrived. */
  clear(): void {
    this.tiles.clear();
  }

  /**
   * Tiles that cover a time range at a level, from left to right. While a tile is missing, the matching part of a cached wider tile is
   * used.
   */
  covering(start: number, end: number, level: number): { tile: Tile; from: number; to: number }[] {
    const visible: { tile: Tile; from: number; to: number }[] = [];
    for (let number = tileAt(start, level); number <= tileAt(end, level); number++) {
      const width = binsPerTile * 2 ** level;
      const tile = this.tileAt(level, number) ?? this.cachedWider(level, number);
      if (tile)
        visible.push({
          tile,
          from: Math.max(start, number * width),
          to: Math.min(end, (number + 1) * width),
        });
    }
    return visible;
  }

  private tileAt(level: number, number: number): Tile | null {
    const key = `${level}/${number}`;
    const tile = this.tiles.get(key);
    if (tile === 'requested') return null;
    if (tile) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
      return tile;
    }
    this.tiles.set(key, 'requested');
    void this.fetch(key, level, number);
    return null;
  }

  private cachedWider(level: number, number: number): Tile | null {
    for (let up = 1; up <= 12; up++) {
      const above = Math.floor(number / 2 ** up);
      const tile = this.tiles.get(`${level + up}/${above}`);
      if (tile && tile !== 'requested') return tile;
    }
    return null;
  }

  private async fetch(key: string, level: number, number: number): Promise<void> {
    try {
      const records = await this.source.tile(level, number);
      // The lanes changed while the tile was fetched.
      if (this.tiles.get(key) !== 'requested') return;
      const width = binsPerTile * 2 ** level;
      const lanes = new Map<number, LaneRecord[]>();
      for (const record of records) lanes.set(record.lane, [...(lanes.get(record.lane) ?? []), record]);
      this.tiles.set(key, { level, tile: number, start: number * width, width, lanes });
      for (const old of [...this.tiles.keys()].slice(0, -maxTiles)) this.tiles.delete(old);
      this.onTile();
    } catch (error) {
      this.tiles.delete(key);
      this.onError(error);
    }
  }
}
