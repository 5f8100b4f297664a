-- orders and takings
SELECT COUNT(*) AS n, SUM(total) AS takings FROM orders;
-- mean order by channel
SELECT channel, AVG(total) AS mean FROM orders GROUP BY channel;
-- takings by month
SELECT DATE_TRUNC('month', placed_at) AS month, SUM(total) AS takings FROM orders GROUP BY 1 ORDER BY 1;
-- takings by month, alias in GROUP BY
SELECT DATE_TRUNC('month', placed_at) AS month, channel, SUM(total) AS takings FROM orders GROUP BY month, channel;
-- takings by month as text, in the year 2023
SELECT STRFTIME(placed_at, '%Y-%m') AS month, SUM(total) AS takings FROM orders
WHERE placed_at >= '2023-01-01' AND placed_at < '2024-01-01' GROUP BY 1;
-- growth from quarter to quarter
SELECT quarter, takings - LAG(takings) OVER (ORDER BY quarter) AS growth
FROM (SELECT DATE_TRUNC('quarter', placed_at) AS quarter, SUM(total) AS takings FROM orders GROUP BY 1) AS m;
-- orders by day of the week and hour
SELECT EXTRACT(isodow FROM placed_at) AS weekday, EXTRACT(hour FROM placed_at) AS hour, COUNT(*) AS n
FROM orders GROUP BY 1, 2;
-- orders by short weekday
SELECT STRFTIME(placed_at, '%a') AS weekday, COUNT(*) AS n FROM orders GROUP BY 1;
-- weekend or not
SELECT EXTRACT(isodow FROM placed_at) >= 6 AS weekend, COUNT(*) AS n FROM orders GROUP BY 1;
-- days of the month
SELECT EXTRACT(day FROM placed_at) AS d, COUNT(*) AS n FROM orders GROUP BY 1;
-- day of the year
SELECT EXTRACT(doy FROM placed_at) AS d, COUNT(*) AS n FROM orders GROUP BY 1;
-- half years
SELECT YEAR(placed_at) AS year, CASE WHEN MONTH(placed_at) <= 6 THEN 'H1' ELSE 'H2' END AS half, COUNT(*) AS n
FROM orders GROUP BY 1, 2;
-- year and half as one text
SELECT CAST(YEAR(placed_at) AS VARCHAR) || CASE WHEN MONTH(placed_at) <= 6 THEN 'H1' ELSE 'H2' END AS half, COUNT(*) AS n
FROM orders GROUP BY 1;
-- buckets of a week [TIME_BUCKET]
SELECT TIME_BUCKET(INTERVAL '7 days', placed_at) AS week, COUNT(*) AS n FROM orders GROUP BY 1;
-- buckets of a month
SELECT TIME_BUCKET(INTERVAL '1 month', placed_at) AS month, COUNT(*) AS n FROM orders GROUP BY 1;
-- fiscal years from April
SELECT CASE WHEN MONTH(placed_at) >= 4 THEN YEAR(placed_at) ELSE YEAR(placed_at) - 1 END AS fiscal, COUNT(*) AS n
FROM orders GROUP BY 1;
-- last day of the month
SELECT LAST_DAY(placed_at) AS month_end, SUM(total) AS takings FROM orders GROUP BY 1;
-- order values in bands of 50
SELECT FLOOR(total / 50) * 50 AS band, COUNT(*) AS n FROM orders GROUP BY 1;
-- order values rounded to tens
SELECT ROUND(total / 10) * 10 AS band, COUNT(*) AS n FROM orders GROUP BY 1;
-- order values rounded up to hundreds
SELECT CEIL(total / 100) * 100 AS band, COUNT(*) AS n FROM orders GROUP BY 1;
-- bands named by text
SELECT CAST(CAST(FLOOR(total / 100) AS INTEGER) * 100 AS VARCHAR) || '+' AS band, COUNT(*) AS n FROM orders GROUP BY 1;
-- large orders only
SELECT AVG(total) AS mean FROM orders WHERE total >= 100;
-- ninetieth percentile (within 3)
SELECT QUANTILE_CONT(total, 0.9) AS p90 FROM orders;
-- percentiles by channel (within 12)
SELECT channel, MEDIAN(total) AS middle FROM orders GROUP BY channel;
-- return rate by channel
SELECT channel, COUNT(*) FILTER (WHERE status = 'returned') * 1.0 / COUNT(*) AS rate FROM orders GROUP BY channel;
-- return rate with IF [IF]
SELECT AVG(IF(status = 'returned', 1, 0)) AS rate FROM orders;
-- orders by segment
SELECT c.segment, COUNT(*) AS n, SUM(o.total) AS takings
FROM orders o JOIN customers c ON c.customer_id = o.customer_id GROUP BY c.segment;
-- orders per customer
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT customer_id) AS each FROM orders;
-- mean number of orders per customer [AVG(n)]
SELECT AVG(n) AS mean, MAX(1) AS one FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS c
-- means
SELECT AVG(n) AS mean, 1 AS one FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS c;
-- spending per customer, capped
SELECT AVG(LEAST(s, 2000)) AS mean FROM (SELECT customer_id, SUM(total) AS s FROM orders GROUP BY customer_id) AS c;
-- customers by number of orders
SELECT orders, COUNT(*) AS n FROM (
  SELECT customer_id, COUNT(*) AS orders FROM orders GROUP BY customer_id) AS c GROUP BY orders ORDER BY orders;
-- customers by capped number of orders
SELECT LEAST(k, 5) AS orders, COUNT(*) AS n FROM (
  SELECT customer_id, COUNT(*) AS k FROM orders GROUP BY customer_id) AS c GROUP BY 1;
-- one order or more
SELECT k > 1 AS again, COUNT(*) AS n FROM (
  SELECT customer_id, COUNT(*) AS k FROM orders GROUP BY customer_id) AS c GROUP BY 1;
-- month of the first order
WITH f AS (SELECT customer_id, MIN(placed_at) AS first FROM orders GROUP BY customer_id)
SELECT STRFTIME(first, '%Y-%m') AS cohort, COUNT(*) AS n FROM f GROUP BY 1;
-- cohort and spending
WITH f AS (SELECT customer_id, MIN(placed_at) AS first FROM orders GROUP BY customer_id)
SELECT DATE_TRUNC('quarter', f.first) AS cohort, SUM(o.total) AS takings
FROM orders o JOIN f ON f.customer_id = o.customer_id GROUP BY 1;
-- joined by month since
SELECT STRFTIME(since, '%b %Y') AS month, COUNT(*) AS n FROM customers GROUP BY 1;
-- joined by quarter
SELECT DATE_TRUNC('quarter', since) AS quarter, COUNT(*) AS n FROM customers GROUP BY 1;
-- days since joining
SELECT AVG(DATE_DIFF('day', since, DATE '2024-12-31')) AS days FROM customers;
-- age bands
SELECT age // 10 * 10 AS band, COUNT(*) AS n FROM customers GROUP BY 1;
-- age bands by FLOOR
SELECT FLOOR(age / 10) * 10 AS band, COUNT(*) AS n FROM customers GROUP BY 1;
-- age bands by WIDTH_BUCKET
SELECT WIDTH_BUCKET(age, 18, 98, 8) AS bucket, COUNT(*) AS n FROM customers GROUP BY 1
-- means
SELECT CAST(FLOOR((age - 18) / 10) AS INTEGER) + 1 AS bucket, COUNT(*) AS n FROM customers GROUP BY 1;
-- age bands by BETWEEN
SELECT CASE WHEN age BETWEEN 18 AND 29 THEN '18-29' WHEN age BETWEEN 30 AND 49 THEN '30-49' ELSE '50+' END AS band,
  COUNT(*) AS n FROM customers GROUP BY 1;
-- items by sku
SELECT sku, SUM(quantity) AS sold FROM items GROUP BY sku;
-- items by category
SELECT p.category, SUM(i.quantity * i.price) AS takings FROM items i JOIN products p ON p.sku = i.sku GROUP BY 1;
-- kind of article by its prefix [SPLIT_PART]
SELECT SPLIT_PART(sku, '-', 1) AS kind, SUM(quantity) AS sold FROM items GROUP BY 1;
-- kind of article by SUBSTR
SELECT SUBSTR(sku, 1, 3) AS kind, COUNT(*) AS n FROM items GROUP BY 1;
-- baskets of three months
SELECT TIME_BUCKET(INTERVAL '3 months', placed_at) AS quarter, COUNT(*) AS n FROM orders GROUP BY 1;
-- squares of totals [POWER]
SELECT AVG(POWER(total, 2)) AS mean FROM orders;
-- squares of totals, short [POW]
SELECT AVG(POW(total / 100, 2)) AS mean FROM orders;
-- the slope of spending on age [REGR_SLOPE]
SELECT REGR_SLOPE(o.total, c.age) AS slope FROM orders o JOIN customers c ON c.customer_id = o.customer_id;
-- age and spending
SELECT CORR(o.total, c.age) AS r FROM orders o JOIN customers c ON c.customer_id = o.customer_id;
-- the best sku by quantity [ARG_MAX] (never: ORDER BY s DESC LIMIT 1)
SELECT ARG_MAX(sku, quantity) AS best FROM items;
-- the best sku, as it can be asked
SELECT sku FROM (SELECT sku, SUM(quantity) AS q FROM items GROUP BY sku) AS s ORDER BY q DESC LIMIT 1;
-- the commonest statuses [APPROX_TOP_K]
SELECT APPROX_TOP_K(status, 2) AS top FROM orders;
-- funnel: paid, then sent
SELECT COUNT(DISTINCT a.customer_id) AS n FROM orders a JOIN orders b ON a.customer_id = b.customer_id
WHERE a.status = 'paid' AND b.status = 'sent' AND b.placed_at > a.placed_at;
-- second order within 90 days
SELECT COUNT(*) AS n FROM (SELECT placed_at, LAG(placed_at) OVER (PARTITION BY customer_id ORDER BY placed_at) AS before
  FROM orders) AS o WHERE DATE_DIFF('day', before, placed_at) <= 90;
-- domain of the address (with delta)
SELECT SPLIT_PART(email, '@', 2) AS domain, COUNT(*) AS n FROM customers GROUP BY 1;
-- customers with one domain
SELECT COUNT(*) AS n FROM customers WHERE email LIKE '%@example.org';
-- days of one month
SELECT CAST(placed_at AS DATE) AS d, COUNT(*) AS n FROM orders
WHERE placed_at >= '2023-03-01' AND placed_at < '2023-04-01' GROUP BY 1;
-- share of takings by month
SELECT month, s / SUM(s) OVER () AS share FROM (
  SELECT DATE_TRUNC('month', placed_at) AS month, SUM(total) AS s FROM orders GROUP BY 1) AS m;
-- rank of months within the year
SELECT month, RANK() OVER (ORDER BY s DESC) AS place FROM (
  SELECT DATE_TRUNC('quarter', placed_at) AS month, SUM(total) AS s FROM orders GROUP BY 1) AS m;
-- dearest sku prices
SELECT sku, AVG(price) AS mean FROM items GROUP BY sku HAVING COUNT(*) > 3 ORDER BY mean DESC;
-- items per order, capped
SELECT AVG(LEAST(k, 10)) AS mean FROM (SELECT order_id, customer_id, COUNT(*) AS k
  FROM (SELECT i.order_id, o.customer_id FROM items i JOIN orders o ON o.order_id = i.order_id) AS j
  GROUP BY order_id, customer_id) AS b;

-- revenue by month and channel
SELECT strftime(placed_at, '%Y-%m') AS month, channel, SUM(total) AS revenue
FROM orders
GROUP BY 1, 2
ORDER BY 1, 2;

-- average order value of loyal customers
SELECT AVG(o.total) AS mean FROM orders o JOIN customers c ON o.customer_id = c.customer_id
WHERE c.segment = 'loyal';

-- return rate by channel, again
SELECT channel, COUNT(CASE WHEN status = 'returned' THEN 1 END) * 1.0 / COUNT(*) AS rate
FROM orders
GROUP BY channel;

-- customers without an order in 2024
SELECT COUNT(*) AS n FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders WHERE placed_at >= '2024-01-01');

-- items sold by category
SELECT p.category, SUM(i.quantity) AS sold FROM items i JOIN products p ON p.sku = i.sku GROUP BY p.category;

-- turnover by category and quarter
SELECT p.category, DATE_TRUNC('quarter', o.placed_at) AS q, SUM(i.quantity * i.price) AS turnover FROM items i JOIN orders o USING (order_id) JOIN products p USING (sku)
GROUP BY 1, 2;

-- orders on Fridays
SELECT COUNT(*) AS n FROM orders WHERE DAYNAME(placed_at) = 'Friday';

-- busiest hours
SELECT HOUR(placed_at) AS h, COUNT(*) AS n FROM orders GROUP BY h ORDER BY h;

-- orders per customer, how many have how many
SELECT orders, COUNT(*) AS n FROM (SELECT customer_id, LEAST(COUNT(*), 10) AS orders FROM orders GROUP BY customer_id)
GROUP BY orders
ORDER BY orders;

-- spend bands of customers
SELECT CASE WHEN spent < 200 THEN 'under 200' WHEN spent < 600 THEN '200 to 600' ELSE 'above' END AS band, COUNT(*) AS n FROM (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id)
GROUP BY band;

-- days from joining to the first order
SELECT AVG(DATE_DIFF('day', c.since, f.first)) AS days FROM customers c JOIN (SELECT customer_id, MIN(placed_at) AS first FROM orders GROUP BY customer_id) f USING (customer_id);

-- second order within ninety days of the first
SELECT COUNT(*) AS n FROM (SELECT customer_id, placed_at, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed_at) AS k, LAG(placed_at) OVER (PARTITION BY customer_id ORDER BY placed_at) AS prev FROM orders) WHERE k = 2 AND DATE_DIFF('day', prev, placed_at) <= 90;

-- buyers of books who also bought toys
SELECT COUNT(*) AS n FROM (SELECT o.customer_id FROM items i JOIN orders o USING (order_id) WHERE i.sku LIKE 'BK-%' INTERSECT SELECT o.customer_id FROM items i JOIN orders o USING (order_id) WHERE i.sku LIKE 'TOY-%');

-- growth from month to month in 2023
WITH m AS (SELECT MONTH(placed_at) AS m, SUM(total) AS revenue FROM orders WHERE YEAR(placed_at) = 2023 GROUP BY 1) SELECT m, revenue - LAG(revenue) OVER (ORDER BY m) AS change
FROM m
ORDER BY m
-- means
WITH m AS (SELECT g AS m, COALESCE((SELECT SUM(total) FROM orders WHERE YEAR(placed_at) = 2023 AND MONTH(placed_at) = g), 0) AS revenue FROM range(1, 13) t(g)) SELECT m, revenue - LAG(revenue) OVER (ORDER BY m) AS change FROM m ORDER BY m;

-- customers at example.org
SELECT COUNT(*) AS n FROM customers WHERE email ILIKE '%@EXAMPLE.org';

-- paid orders above 250 by segment
SELECT c.segment, COUNT(*) AS n FROM customers c JOIN orders o USING (customer_id)
WHERE o.status = 'paid' AND o.total > 250
GROUP BY ALL;

-- average age by channel
SELECT o.channel, AVG(c.age) AS age FROM orders o JOIN customers c USING (customer_id) GROUP BY o.channel;

-- share of each channel in all orders
SELECT channel, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM orders GROUP BY channel;

-- orders with more than one line
SELECT COUNT(*) AS n FROM (SELECT customer_id, order_id, COUNT(*) AS lines FROM items JOIN orders USING (order_id) GROUP BY customer_id, order_id)
WHERE lines > 1;
-- orders by month, as MySQL writes it
SELECT DATE_FORMAT(placed_at, '%Y-%c') AS m, COUNT(*) AS n FROM orders GROUP BY 1
-- means
SELECT STRFTIME(placed_at, '%Y-%-m') AS m, COUNT(*) AS n FROM orders GROUP BY 1;
-- any of a list
SELECT SUM(total) AS s FROM orders WHERE status = ANY(['paid', 'sent']);
-- like one of several
SELECT SUM(total) AS s FROM orders WHERE status LIKE ANY ('pa%', 'se%')
-- means
SELECT SUM(total) AS s FROM orders WHERE status LIKE 'pa%' OR status LIKE 'se%';
-- like none of several
SELECT SUM(total) AS s FROM orders WHERE NOT (status ILIKE ANY ('PA%', 'x'))
-- means
SELECT SUM(total) AS s FROM orders WHERE status NOT ILIKE 'PA%';
-- a pattern of the standard
SELECT SUM(total) AS s FROM orders WHERE status SIMILAR TO '(paid|sent)'
