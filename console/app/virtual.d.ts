declare module "virtual:operations" {
  const operations: Record<string, import("../operations.ts").Operation>;
  export default operations;
}
