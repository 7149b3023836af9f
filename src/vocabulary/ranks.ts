/** "rank 2 (GPU 1)": the same name in sentences, tables and errors; without a rank "GPU 1". */
export function rankName({ rank, device }: { rank: number | null; device: number | null }): string {
  const gpu = device === null ? null : `GPU ${device}`;
  if (rank === null) return gpu ?? 'a rank without a number';
  return gpu === null ? `rank ${rank}` : `rank ${rank} (${gpu})`;
}
