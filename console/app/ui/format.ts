// Numbers and times as people read them.

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY_AND_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const whole = (count: number): string => WHOLE.format(count);
export const short = (count: number): string => SHORT.format(count);

/** Money in the unit of the prices of the configuration, which names none. */
export function money(amount: number): string {
  if (amount === 0) return "0";
  return amount < 0.01 ? amount.toPrecision(2) : amount.toFixed(2);
}

/** A time of day. `millis`: since 1970. */
export const time = (millis: number): string => TIME.format(millis);

/** A day and a time. `seconds`: since 1970. */
export const moment = (seconds: number): string => DAY_AND_TIME.format(seconds * 1000);

export function duration(millis: number): string {
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60_000) return `${(millis / 1000).toFixed(millis < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(millis / 60_000)} min ${Math.round((millis % 60_000) / 1000)} s`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  return `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

/** `one key`, `2 keys`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`;
