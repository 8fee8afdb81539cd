// Human-readable numbers and times.

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const SHORT_DAY_AND_TIME = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } as const;
const THIS_YEAR = new Intl.DateTimeFormat("en-GB", SHORT_DAY_AND_TIME);
const DAY_AND_TIME = new Intl.DateTimeFormat("en-GB", { ...SHORT_DAY_AND_TIME, year: "numeric" });
const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export const whole = (count: number): string => WHOLE.format(count);
export const short = (count: number): string => SHORT.format(count);

/** Money, with its currency if that is known. */
export function money(amount: number, currency: string | null = null): string {
  // Not in the form 1.2e-7.
  const small = amount.toFixed(9).match(/^0\.0*\d{1,2}/)?.[0] ?? "0";
  const number = amount === 0 ? "0" : amount < 0.01 ? small : amount.toFixed(2);
  return currency === null ? number : `${number} ${currency}`;
}

/** A time of day. `millis`: since 1970. */
export const time = (millis: number): string => TIME.format(millis);

/** A day and a time, with the year unless it is this year. `seconds`: since 1970. */
export function moment(seconds: number): string {
  const date = new Date(seconds * 1000);
  return (date.getFullYear() === new Date().getFullYear() ? THIS_YEAR : DAY_AND_TIME).format(date);
}

/** A day and a time in full. `seconds`: since 1970. */
export const fullMoment = (seconds: number): string => FULL.format(seconds * 1000);

/** A day such as `2026-03-01`, without its year. */
export const shortDay = (day: string): string => DAY.format(new Date(day));

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
