/** How a process stopped: "was killed by SIGKILL" or "exited with code 3". */
export const exitText = (
  signal: string | null | undefined,
  code: number | string | null | undefined,
): string => (signal ? `was killed by ${signal}` : `exited with code ${code}`);
