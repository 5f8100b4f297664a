-- how many visits
SELECT COUNT(*) AS n FROM visits;
-- visits by ward
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC;
-- patients seen by ward
SELECT ward, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY ward;
-- visits by year
SELECT EXTRACT(year FROM admitted_at) AS year, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- visits by year and month as numbers
SELECT YEAR(admitted_at) * 100 + MONTH(admitted_at) AS ym, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- weekday as a number
SELECT EXTRACT(isodow FROM admitted_at) AS weekday, COUNT(*) AS n FROM visits GROUP BY 1;
-- hour of admission
SELECT EXTRACT(hour FROM admitted_at) AS hour, COUNT(*) AS n FROM visits GROUP BY 1;
-- visits by month of a timestamp [DATE_TRUNC, 4]
SELECT DATE_TRUNC('month', admitted_at) AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- visits by week
SELECT DATE_TRUNC('week', admitted_at) AS week, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- visits by quarter
SELECT DATE_TRUNC('quarter', admitted_at) AS quarter, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- visits by day, CAST [4]
SELECT CAST(admitted_at AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY 1;
-- visits by day, colons [4]
SELECT admitted_at::date AS d, COUNT(*) AS n FROM visits GROUP BY 1;
-- visits by day, DATE() [DATE]
SELECT DATE(admitted_at) AS d, COUNT(*) AS n FROM visits GROUP BY 1
-- means
SELECT CAST(admitted_at AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY 1;
-- visits by month of a date
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- monthly active patients [4]
SELECT DATE_TRUNC('month', admitted_at) AS month, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY 1;
-- cumulative visits by month [4]
SELECT month, SUM(n) OVER (ORDER BY month) AS total
FROM (SELECT DATE_TRUNC('month', admitted_at) AS month, COUNT(*) AS n FROM visits GROUP BY 1) AS m;
-- rolling three months [4]
SELECT month, AVG(n) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS rolling
FROM (SELECT DATE_TRUNC('month', admitted_at) AS month, COUNT(*) AS n FROM visits GROUP BY 1) AS m;
-- cohort of the first visit by quarter [4, 15]
WITH firsts AS (SELECT patient_id, MIN(admitted_at) AS first FROM visits GROUP BY patient_id)
SELECT DATE_TRUNC('quarter', first) AS cohort, COUNT(*) AS n FROM firsts GROUP BY 1;
-- cohort retention [4]
WITH firsts AS (SELECT patient_id, MIN(admitted_at) AS first FROM visits GROUP BY patient_id)
SELECT DATE_TRUNC('year', f.first) AS cohort, DATE_DIFF('year', f.first, v.admitted_at) AS later,
  COUNT(DISTINCT v.patient_id) AS n
FROM visits v JOIN firsts f ON f.patient_id = v.patient_id
WHERE DATE_DIFF('year', f.first, v.admitted_at) BETWEEN 0 AND 2 GROUP BY 1, 2;
-- year-month as text [STRFTIME]
SELECT STRFTIME(admitted_at, '%Y-%m') AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- format first, as others write it
SELECT STRFTIME('%Y-%m-%d', admitted_at) AS d, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- year-month as Postgres writes it [TO_CHAR]
SELECT TO_CHAR(admitted_at, 'YYYY-MM') AS month, COUNT(*) AS n FROM visits GROUP BY 1
-- means
SELECT STRFTIME(admitted_at, '%Y-%m') AS month, COUNT(*) AS n FROM visits GROUP BY 1;
-- name of the weekday [DAYNAME]
SELECT DAYNAME(admitted_at) AS weekday, COUNT(*) AS n FROM visits GROUP BY 1;
-- name of the month [MONTHNAME]
SELECT MONTHNAME(admitted_at) AS month, AVG(cost) AS mean FROM visits GROUP BY 1;
-- end of the month [LAST_DAY]
SELECT LAST_DAY(admitted_at) AS month_end, COUNT(*) AS n FROM visits GROUP BY 1;
-- quarters by name
SELECT YEAR(admitted_at) || '-Q' || QUARTER(admitted_at) AS quarter, COUNT(*) AS n FROM visits GROUP BY 1;
-- ISO weeks with their year
SELECT EXTRACT(isoyear FROM admitted_at) AS year, EXTRACT(week FROM admitted_at) AS week, COUNT(*) AS n
FROM visits GROUP BY 1, 2;
-- ISO weeks as text
SELECT STRFTIME(admitted_at, '%G-W%V') AS week, COUNT(*) AS n FROM visits GROUP BY 1;
-- visits by hour of one week
SELECT DATE_TRUNC('hour', admitted_at) AS hour, COUNT(*) AS n FROM visits
WHERE admitted_at >= '2023-05-01' AND admitted_at < '2023-05-08' GROUP BY 1;
-- month and ward
SELECT ward, DATE_TRUNC('month', admitted_at) AS month, COUNT(*) AS n FROM visits GROUP BY ALL;
-- cost in bands of 500 [FLOOR*500, 5]
SELECT FLOOR(cost / 500) * 500 AS band, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
-- cost in bands by whole division
SELECT CAST(cost // 500 AS INTEGER) AS band, COUNT(*) AS n FROM visits GROUP BY 1
-- means
SELECT CAST(FLOOR(cost / 500) AS INTEGER) AS band, COUNT(*) AS n FROM visits GROUP BY 1;
-- cost rounded to thousands
SELECT ROUND(cost, -3) AS thousands, COUNT(*) AS n FROM visits GROUP BY 1;
-- cost in buckets [WIDTH_BUCKET]
SELECT WIDTH_BUCKET(cost, 0, 10000, 20) AS bucket, COUNT(*) AS n FROM visits GROUP BY 1
-- means
SELECT CASE WHEN cost >= 10000 THEN 21 ELSE CAST(FLOOR(cost / 500) AS INTEGER) + 1 END AS bucket, COUNT(*) AS n
FROM visits GROUP BY 1;
-- bands by CASE
SELECT CASE WHEN cost < 1000 THEN 'low' WHEN cost < 5000 THEN 'middle' ELSE 'high' END AS band, COUNT(*) AS n
FROM visits GROUP BY 1;
-- bands by CASE of a step
SELECT CASE WHEN cost >= 5000 THEN 5000 ELSE FLOOR(cost / 1000) * 1000 END AS band, COUNT(*) AS n
FROM visits GROUP BY 1;
-- dear or not
SELECT cost > 1000 AS dear, COUNT(*) AS n FROM visits GROUP BY 1;
-- histogram in one call [HISTOGRAM] (never: FLOOR)
SELECT HISTOGRAM(cost) FROM visits;
-- mean and spread of cost
SELECT AVG(cost) AS mean, STDDEV(cost) AS sd FROM visits;
-- mean cost by ward
SELECT ward, AVG(cost) AS mean, SUM(cost) AS total FROM visits GROUP BY ward;
-- cost per patient
SELECT SUM(cost) / COUNT(DISTINCT patient_id) AS each FROM visits;
-- share of urgent visits
SELECT AVG(CASE WHEN urgent THEN 1.0 ELSE 0.0 END) AS share FROM visits;
-- urgent visits by ward with FILTER
SELECT ward, COUNT(*) FILTER (WHERE urgent) AS n FROM visits GROUP BY ward;
-- share of each ward in the total
SELECT ward, n * 1.0 / SUM(n) OVER () AS share FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS w;
-- the two busiest wards
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 2;
-- length of stay in days
SELECT AVG(DATE_DIFF('day', admitted_at, discharged_at)) AS mean FROM visits;
-- length of stay by subtraction of dates
SELECT AVG(LEAST(CAST(discharged_at AS DATE) - CAST(admitted_at AS DATE), 30)) AS mean FROM visits;
-- length of stay, time minus time [time minus time]
SELECT AVG(EXTRACT(epoch FROM (discharged_at - admitted_at)) / 3600) AS hours FROM visits;
-- length of stay by EPOCH [EPOCH]
SELECT AVG((EPOCH(discharged_at) - EPOCH(admitted_at)) / 3600) AS hours FROM visits;
-- length of stay by DATEDIFF [DATEDIFF]
SELECT AVG(DATEDIFF(day, admitted_at, discharged_at)) AS days FROM visits
-- means
SELECT AVG(DATE_DIFF('day', admitted_at, discharged_at)) AS days FROM visits;
-- age at admission [AGE] (never: DATE_DIFF)
SELECT AVG(AGE(admitted_at, discharged_at)) FROM visits;
-- the last 365 days [CURRENT_DATE - 365]
SELECT COUNT(*) AS n FROM visits WHERE admitted_at < CURRENT_DATE - 365
-- means
SELECT COUNT(*) AS n FROM visits WHERE admitted_at < CURRENT_DATE - 365;
-- back within 30 days by INTERVAL [column + INTERVAL]
SELECT COUNT(*) AS n FROM visits WHERE discharged_at <= admitted_at + INTERVAL '3' DAY;
-- readmission within 90 days by LEAD
SELECT COUNT(*) AS n FROM (
  SELECT discharged_at, LEAD(admitted_at) OVER (PARTITION BY patient_id ORDER BY admitted_at) AS next FROM visits) AS v
WHERE DATE_DIFF('day', discharged_at, next) BETWEEN 0 AND 90;
-- gap to the next visit, bounded by WHERE [21]
SELECT AVG(gap) AS mean FROM (
  SELECT DATE_DIFF('day', admitted_at, LEAD(admitted_at) OVER (PARTITION BY patient_id ORDER BY admitted_at)) AS gap
  FROM visits) AS v WHERE gap > 0 AND gap < 365;
-- visits per patient, capped
SELECT AVG(LEAST(n, 10)) AS mean FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS p;
-- visits per patient [AVG(n), 21]
SELECT AVG(n) AS mean FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS p;
-- how many patients have how many visits
SELECT k, COUNT(*) AS n FROM (SELECT patient_id, COUNT(*) AS k FROM visits GROUP BY patient_id) AS p GROUP BY k;
-- patients with more than two visits
SELECT COUNT(*) AS n FROM (SELECT patient_id, COUNT(*) AS k FROM visits GROUP BY patient_id HAVING COUNT(*) > 2) AS p;
-- mean of each patient's mean cost
SELECT AVG(m) AS mean FROM (SELECT patient_id, AVG(cost) AS m FROM visits GROUP BY patient_id) AS p;
-- most of each patient's cost
SELECT AVG(m) AS mean FROM (SELECT patient_id, MAX(cost) AS m FROM visits GROUP BY patient_id) AS p;
-- each patient's dearest visit in bands
SELECT FLOOR(m / 1000) AS band, COUNT(*) AS n
FROM (SELECT patient_id, MAX(cost) AS m FROM visits GROUP BY patient_id) AS p GROUP BY 1;
-- first visits by ward
SELECT ward, COUNT(*) AS n FROM (
  SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted_at) = 1) AS v GROUP BY ward;
-- new against returning by year
SELECT EXTRACT(year FROM admitted_at) AS year, k = 1 AS fresh, COUNT(*) AS n FROM (
  SELECT admitted_at, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted_at) AS k FROM visits) AS v
GROUP BY 1, 2;
-- prefix of a code
SELECT LEFT(code, 3) AS chapter, COUNT(*) AS n FROM visits GROUP BY 1;
-- part of a code [SPLIT_PART]
SELECT SPLIT_PART(code, '.', 1) AS chapter, COUNT(*) AS n FROM visits GROUP BY 1;
-- code and ward in one [CONCAT]
SELECT CONCAT(ward, ': ', code) AS which, COUNT(*) AS n FROM visits GROUP BY 1;
-- one of a list of codes [LIST_CONTAINS]
SELECT COUNT(*) AS n FROM visits WHERE LIST_CONTAINS(['I21.0', 'I21.4'], code);
-- codes by a pattern [REGEXP]
SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES(code, '^I21')
-- means
SELECT COUNT(*) AS n FROM visits WHERE code LIKE 'I21%';
-- codes by LIKE
SELECT COUNT(*) AS n FROM visits WHERE code LIKE 'I21%';
-- wards of the public table
SELECT w.building, COUNT(*) AS n FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.building;
-- floor by inline values [VALUES]
SELECT f.level, COUNT(*) AS n FROM visits v
JOIN (VALUES ('Cardiology', 1), ('Surgery', 2)) AS f(ward, level) ON f.ward = v.ward GROUP BY f.level;
-- cost by sex of the patient
SELECT p.sex, AVG(v.cost) AS mean FROM visits v JOIN patients p ON p.patient_id = v.patient_id GROUP BY p.sex;
-- patients by decade of birth
SELECT FLOOR(EXTRACT(year FROM born) / 10) * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1;
-- patients by year of birth [birth-year groups]
SELECT EXTRACT(year FROM born) AS year, COUNT(*) AS n FROM patients GROUP BY 1;
-- age groups at a fixed day
SELECT DATE_DIFF('year', born, DATE '2024-12-31') // 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1;
-- adults and children
SELECT CASE WHEN DATE_DIFF('year', born, DATE '2024-12-31') < 18 THEN 'child' ELSE 'adult' END AS who, COUNT(*) AS n
FROM patients GROUP BY 1;
-- patients who were never in surgery [NOT IN]
SELECT COUNT(*) AS n FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits WHERE ward = 'Surgery');
-- patients who were in two wards
SELECT COUNT(*) AS n FROM patients p WHERE
  EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'Surgery')
  AND EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'Oncology');
-- rows of people [SELECT *] (never: rows of people are never shown)
SELECT * FROM visits LIMIT 10;
-- postcodes that are not declared [undeclared] (never: declare)
SELECT postcode, COUNT(*) AS n FROM patients GROUP BY postcode;
-- the most frequent postcodes [undeclared, top-k] (never: declare)
SELECT postcode, COUNT(*) AS n FROM patients GROUP BY postcode ORDER BY n DESC LIMIT 5;
-- prefix of an undeclared postcode [undeclared, prefix] (with delta)
SELECT LEFT(postcode, 3) AS area, COUNT(*) AS n FROM patients GROUP BY 1;
-- a sample [SAMPLE] (never: SAMPLE)
SELECT AVG(cost) FROM visits USING SAMPLE 10;
-- names in one text [STRING_AGG] (never: not supported)
SELECT STRING_AGG(ward, ', ') FROM visits;
-- any value [ANY_VALUE] (never: not supported)
SELECT ANY_VALUE(ward) FROM visits;
-- mean of logarithms [AVG(LN)] (never: LN)
SELECT AVG(LN(cost)) FROM visits;
-- mean of logarithms from 1 on
SELECT AVG(LN(GREATEST(cost, 1))) AS mean FROM visits;
-- median cost (within 20)
SELECT MEDIAN(cost) AS middle FROM visits;
-- year over year
SELECT year, n, n - LAG(n) OVER (ORDER BY year) AS more
FROM (SELECT EXTRACT(year FROM admitted_at) AS year, COUNT(*) AS n FROM visits GROUP BY 1) AS y ORDER BY year;
-- totals by ROLLUP
SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, urgent);
-- wards with more than ten visits
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 10;
-- wards as columns [PIVOT] (never: PIVOT)
PIVOT visits ON ward USING COUNT(*);
-- columns of a table [DESCRIBE]
DESCRIBE visits
-- means nothing;
-- tables [SHOW]
SHOW TABLES
-- means nothing;
-- a summary [SUMMARIZE]
SUMMARIZE visits
-- means nothing;
-- the ward most often seen [MODE]
SELECT MODE(ward) AS w FROM visits;
-- tails of cost [KURTOSIS] (never: not supported)
SELECT KURTOSIS(cost) FROM visits;
-- diversity of wards [ENTROPY]
SELECT ENTROPY(ward) AS bits FROM visits;
-- patients, approximately [APPROX_COUNT_DISTINCT]
SELECT APPROX_COUNT_DISTINCT(patient_id) AS n FROM visits
-- means
SELECT COUNT(DISTINCT patient_id) AS n FROM visits;;
-- length of stay by DATEDIFF of two dates, as Spark writes it
SELECT AVG(DATEDIFF(discharged_at, admitted_at)) AS days FROM visits
-- means
SELECT AVG(DATE_DIFF('day', admitted_at, discharged_at)) AS days FROM visits;
-- floors listed in WITH
WITH floors(ward, level) AS (VALUES ('Cardiology', 1), ('Surgery', 2))
SELECT level, AVG(cost) AS mean FROM visits JOIN floors USING (ward) GROUP BY level;
-- visits of a listed set
SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT w FROM (VALUES ('Surgery'), ('Oncology')) AS f(w));
-- diversity of wards among urgent visits
SELECT ENTROPY(ward) AS bits FROM visits WHERE urgent;
-- days of one year by YEAR
SELECT day, COUNT(*) AS n FROM visits WHERE YEAR(day) = 2023 GROUP BY 1;
-- cost per point of severity of the mild
SELECT AVG(cost / severity) FILTER (WHERE severity BETWEEN 1 AND 2) AS mean FROM visits;
-- cost per severity above one, NULLIF
SELECT AVG(cost / NULLIF(severity - 1, 0)) AS mean FROM visits;
-- gap between visits, both ends by WHERE
SELECT AVG(gap) AS mean FROM (SELECT cost - LAG(cost) OVER (PARTITION BY patient_id ORDER BY admitted_at) AS gap
  FROM visits) AS v WHERE gap BETWEEN -3000 AND 3000;
-- which visit of a patient it was
SELECT k, AVG(cost) AS mean FROM (SELECT cost, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted_at) AS k
  FROM visits) AS v GROUP BY k HAVING COUNT(*) > 0;
-- visits weighted by severity, as a survey
SELECT WEIGHTED_AVG(cost, severity) AS mean FROM visits
-- means
SELECT SUM(cost * severity) / SUM(severity) AS mean FROM visits;
-- lengths of stay in words
SELECT CASE WHEN date_diff('day', admitted_at, discharged_at) = 0 THEN 'same day'
  WHEN date_diff('day', admitted_at, discharged_at) <= 3 THEN 'short' ELSE 'long' END AS stay, COUNT(*) AS n
FROM visits GROUP BY stay;

-- admissions in the last quarter of 2023 by ward
SELECT ward, COUNT(*) AS n FROM visits WHERE admitted_at BETWEEN '2023-10-01' AND '2023-12-31 23:59:59'
GROUP BY ward
ORDER BY n DESC;

-- share of urgent admissions by ward in per cent (within .06)
SELECT ward, ROUND(100.0 * SUM(CASE WHEN urgent THEN 1 ELSE 0 END) / COUNT(*), 1) AS pct
FROM visits
GROUP BY ward;

-- median stay in days (within 0.05)
SELECT MEDIAN(DATE_DIFF('hour', admitted_at, discharged_at) / 24.0) AS days FROM visits;

-- how many patients came back within thirty days
SELECT COUNT(DISTINCT patient_id) AS patients FROM (SELECT patient_id, admitted_at, LAG(discharged_at) OVER (PARTITION BY patient_id ORDER BY admitted_at) AS before FROM visits)
WHERE admitted_at - before <= INTERVAL 30 DAY;

-- average age at admission
SELECT AVG(DATE_DIFF('year', p.born, v.admitted_at)) AS age FROM visits v JOIN patients p USING (patient_id);

-- admissions by age band and sex
SELECT CASE WHEN DATE_DIFF('year', born, DATE '2024-01-01') < 18 THEN 'child' WHEN DATE_DIFF('year', born, DATE '2024-01-01') < 65 THEN 'adult' ELSE 'senior' END AS band, sex, COUNT(*) AS n FROM patients JOIN visits USING (patient_id)
GROUP BY 1, 2
ORDER BY 1, 2;

-- night admissions against day admissions
SELECT CASE WHEN EXTRACT(HOUR FROM admitted_at) >= 22 OR EXTRACT(HOUR FROM admitted_at) < 6 THEN 'night' ELSE 'day' END AS shift, COUNT(*) AS n
FROM visits
GROUP BY shift;

-- weekend share
SELECT AVG((DAYOFWEEK(admitted_at) IN (0, 6))::INT) AS share FROM visits;

-- the three codes seen most often
SELECT code, COUNT(*) AS n FROM visits GROUP BY code ORDER BY n DESC, code LIMIT 3;

-- average cost per building
SELECT w.building, AVG(v.cost) AS mean FROM visits v INNER JOIN wards w ON w.ward = v.ward GROUP BY w.building;

-- patients with at least three visits
SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 3) AS frequent;

-- patients never seen in surgery
SELECT COUNT(*) AS n FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'Surgery');

-- mean and spread of cost by severity
SELECT severity, AVG(cost) AS mean, STDDEV(cost) AS sd FROM visits GROUP BY severity ORDER BY severity;

-- admissions by ISO week of 2023
SELECT EXTRACT(WEEK FROM admitted_at) AS week, COUNT(*) AS n
FROM visits
WHERE admitted_at >= '2023-01-02' AND admitted_at < '2024-01-01'
GROUP BY week;

-- running total of admissions by month
WITH m AS (SELECT DATE_TRUNC('month', admitted_at) AS month, COUNT(*) AS n FROM visits GROUP BY 1) SELECT month, SUM(n) OVER (ORDER BY month) AS n
FROM m
ORDER BY month;

-- cost of the dearest visit of each patient, on average
SELECT AVG(dearest) AS mean FROM (SELECT patient_id, MAX(cost) AS dearest FROM visits GROUP BY patient_id);

-- decade of birth
SELECT FLOOR(YEAR(born) / 10) * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY decade;

-- correlation of stay and cost (within .002)
SELECT CORR(DATE_DIFF('hour', admitted_at, discharged_at), cost) AS r FROM visits;

-- local night in Rome, by hour
SELECT EXTRACT(HOUR FROM admitted_at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Rome') AS h, COUNT(*) AS n
FROM visits
GROUP BY h;

-- chapter of the code with urgent visits
SELECT LEFT(code, 1) AS chapter, COUNT(*) FILTER (WHERE urgent) AS n FROM visits GROUP BY chapter;
-- the commonest days of birth, which are not listed [APPROX_TOP_K] (never: needs a budget with delta)
SELECT APPROX_TOP_K(born, 3) AS days FROM patients;
-- age in whole years, as Postgres counts
SELECT EXTRACT(YEAR FROM AGE(DATE '2024-01-01', born)) AS age, COUNT(*) AS n FROM patients GROUP BY 1;
-- mean age on a leap day
SELECT AVG(DATE_PART('year', AGE(DATE '2020-02-29', born))) AS age FROM patients;
-- whole years between times, either way around
SELECT SUM(YEAR(AGE(admitted_at + INTERVAL '400' DAY, TIMESTAMP '2024-06-05 12:30:00'))) AS total FROM visits;
-- the two largest wards, as the standard writes it
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC FETCH FIRST 2 ROWS ONLY;
-- two conditions at once
SELECT COUNT(*) AS n FROM visits WHERE (ward, urgent) IN (('Surgery', true), ('Oncology', false));
-- neither of two pairs
SELECT COUNT(*) AS n FROM visits WHERE (ward, severity) NOT IN (('Surgery', 3), ('Oncology', 1)) AND (ward, severity) <> ('Maternity', 2);
-- the first three, as T-SQL writes it
SELECT TOP 3 ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward
-- means SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 3;
-- gaps between visits, of everybody's rows at once [window without the unit] (never: PARTITION BY patient_id)
SELECT AVG(LEAST(gap, 30)) AS days FROM (SELECT DATE_DIFF('day', LAG(day) OVER (ORDER BY day), day) AS gap FROM visits) AS g;
-- a column for each year (never: FILTER (WHERE)
SELECT * FROM visits PIVOT (COUNT(*) FOR ward IN ('Surgery', 'Oncology'));
