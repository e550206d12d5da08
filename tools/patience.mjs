/**
 * patience is the time in milliseconds after which a wait in a test counts as hanging. ROLECALL_TEST_PATIENCE is a
 * factor of it, such as 3 on a slow machine. Go tests have the same limit in internal/patience.
 */
export const patience = 60_000 * Number(process.env.ROLECALL_TEST_PATIENCE || 1);

if (!(patience > 0)) throw new Error(`ROLECALL_TEST_PATIENCE=${process.env.ROLECALL_TEST_PATIENCE}: must be a positive number`);
