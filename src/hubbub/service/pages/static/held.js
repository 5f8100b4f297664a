// A question that waits for a steward: looks again every half a minute.

setTimeout(() => location.reload(), 30_000);
