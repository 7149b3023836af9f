import process from 'node:process';

/**
 * Prints that tests were skipped and exits: with code 1 if the environment variable `requiredBy` is 1, as in a pipeline that has the tool.
 * @param tests what is skipped and what it needs
 * @param reason why it cannot run here
 */
export function skipTests(tests, reason, requiredBy) {
  process.stderr.write(
    `\n*** SKIPPED: ${tests}\n*** ${reason}\n*** What they cover is NOT tested in this run.\n\n`,
  );
  process.exit(process.env[requiredBy] === '1' ? 1 : 0);
}
