/**
 * Work that ends the process that does it would end every process that takes it over. So the starts of asynchronous operations, received
 * messages, runs of subscribers and jobs, mails, migrations and deliveries that `afterRead` makes are counted in the store, and after so many without an end the work is given up. Only
 * processes that died count: one that stops in order gives its start back.
 */
export const startsMax = 3;

/** @param what the process was doing: `carried out the request` */
export function givenUpText(what: string): string {
  return `the program ended ${startsMax} times while it ${what}`;
}
