-- trips by mode
SELECT mode, COUNT(*) AS n, AVG(km) AS mean FROM trips GROUP BY mode;
-- riders by mode
SELECT mode, COUNT(DISTINCT rider_id) AS n FROM trips GROUP BY mode;
-- a map in tenths of a degree [ROUND(lat, 1), 5]
SELECT ROUND(lat, 1) AS y, ROUND(lon, 1) AS x, COUNT(*) AS n FROM trips GROUP BY 1, 2;
-- a map in twentieths [FLOOR(lat*20)/20, 5]
SELECT FLOOR(lat * 20) / 20 AS y, FLOOR(lon * 20) / 20 AS x, COUNT(*) AS n FROM trips GROUP BY 1, 2;
-- a map in quarters
SELECT FLOOR(lat * 4) AS y, FLOOR(lon * 4) AS x, COUNT(*) AS n FROM trips GROUP BY 1, 2;
-- bands of latitude by whole division
SELECT lat // 0.25 AS y, COUNT(*) AS n FROM trips GROUP BY 1
-- means
SELECT FLOOR(lat / 0.25) AS y, COUNT(*) AS n FROM trips GROUP BY 1;
-- a cell by name
SELECT CAST(CAST(FLOOR(lat * 4) AS INTEGER) AS VARCHAR) || '/' || CAST(CAST(FLOOR(lon * 4) AS INTEGER) AS VARCHAR)
  AS cell, COUNT(*) AS n FROM trips GROUP BY 1;
-- trips in a box
SELECT COUNT(*) AS n FROM trips WHERE lat BETWEEN 48.25 AND 48.75 AND lon BETWEEN 2.25 AND 2.75;
-- north or south
SELECT lat > 48.5 AS north, COUNT(*) AS n FROM trips GROUP BY 1;
-- the centre of trips
SELECT AVG(lat) AS y, AVG(lon) AS x FROM trips;
-- km in whole numbers
SELECT FLOOR(km) AS whole, COUNT(*) AS n FROM trips GROUP BY 1;
-- km in bands of 5, by whole division
SELECT km // 5 * 5 AS band, COUNT(*) AS n FROM trips GROUP BY 1
-- means
SELECT FLOOR(km / 5) * 5 AS band, COUNT(*) AS n FROM trips GROUP BY 1;
-- km rounded
SELECT ROUND(km) AS rounded, COUNT(*) AS n FROM trips GROUP BY 1;
-- km cast
SELECT CAST(FLOOR(km) AS INTEGER) AS whole, COUNT(*) AS n FROM trips GROUP BY 1;
-- km in buckets [WIDTH_BUCKET]
SELECT WIDTH_BUCKET(km, 0, 30, 6) AS bucket, COUNT(*) AS n FROM trips WHERE km < 30 GROUP BY 1
-- means
SELECT CAST(FLOOR(km / 5) AS INTEGER) + 1 AS bucket, COUNT(*) AS n FROM trips WHERE km < 30 GROUP BY 1;
-- long trips
SELECT km >= 10 AS long, AVG(fare) AS mean FROM trips GROUP BY 1;
-- short, middle, long
SELECT CASE WHEN km < 5 THEN 'short' WHEN km < 15 THEN 'middle' ELSE 'long' END AS length, COUNT(*) AS n
FROM trips GROUP BY 1;
-- fare per km from 1 km on [WHERE, 21]
SELECT AVG(fare / km) AS mean FROM trips WHERE km >= 1;
-- fare per km as a ratio
SELECT SUM(fare) / SUM(km) AS each FROM trips;
-- speed
SELECT AVG(km / (DATE_DIFF('minute', started_at, ended_at) / 60.0)) AS kmh FROM trips
WHERE DATE_DIFF('minute', started_at, ended_at) >= 5;
-- duration in minutes, capped
SELECT AVG(LEAST(DATE_DIFF('minute', started_at, ended_at), 240)) AS mean FROM trips;
-- duration in bands of half an hour
SELECT LEAST(DATE_DIFF('minute', started_at, ended_at) // 30, 6) AS halves, COUNT(*) AS n FROM trips
WHERE DATE_DIFF('minute', started_at, ended_at) BETWEEN 0 AND 1000 GROUP BY 1;
-- duration, time minus time
SELECT COUNT(*) AS n FROM trips WHERE ended_at - started_at > INTERVAL '1' HOUR;
-- trips by hour of the day
SELECT EXTRACT(hour FROM started_at) AS hour, COUNT(*) AS n FROM trips GROUP BY 1;
-- trips by minute of the hour
SELECT EXTRACT(minute FROM started_at) AS minute, COUNT(*) AS n FROM trips GROUP BY 1;
-- rush hour or not
SELECT EXTRACT(hour FROM started_at) IN (7, 8, 17, 18) AS rush, COUNT(*) AS n FROM trips GROUP BY 1;
-- day or night
SELECT CASE WHEN EXTRACT(hour FROM started_at) BETWEEN 6 AND 21 THEN 'day' ELSE 'night' END AS part, COUNT(*) AS n
FROM trips GROUP BY 1;
-- hours by quarter of the day
SELECT FLOOR(EXTRACT(hour FROM started_at) / 6) * 6 AS part, COUNT(*) AS n FROM trips GROUP BY 1;
-- trips by date and mode
SELECT started_at::date AS d, mode, COUNT(*) AS n FROM trips GROUP BY 1, 2;
-- trips by week and mode
SELECT DATE_TRUNC('week', started_at) AS week, mode, COUNT(*) AS n FROM trips GROUP BY 1, 2;
-- trips by year of a timestamp by DATE_TRUNC
SELECT DATE_TRUNC('year', started_at) AS year, COUNT(*) AS n FROM trips GROUP BY 1;
-- months by TIME_BUCKET of hours
SELECT TIME_BUCKET(INTERVAL '12 hours', started_at) AS half, COUNT(*) AS n FROM trips GROUP BY 1;
-- months since the start
SELECT DATE_DIFF('month', DATE '2022-01-01', started_at) AS months, COUNT(*) AS n FROM trips GROUP BY 1;
-- days since the start
SELECT DATE_DIFF('day', DATE '2022-01-01', started_at) AS days, COUNT(*) AS n FROM trips GROUP BY 1;
-- weekday names by mode
SELECT DAYNAME(started_at) AS weekday, mode, COUNT(*) AS n FROM trips GROUP BY 1, 2;
-- month names of one year
SELECT MONTHNAME(started_at) AS month, COUNT(*) AS n FROM trips WHERE YEAR(started_at) = 2023 GROUP BY 1;
-- hour and minute as text
SELECT STRFTIME(started_at, '%H:00') AS hour, COUNT(*) AS n FROM trips GROUP BY 1;
-- weekend by name
SELECT DAYNAME(started_at) IN ('Saturday', 'Sunday') AS weekend, COUNT(*) AS n FROM trips GROUP BY 1;
-- zones by name
SELECT z.name, COUNT(*) AS n FROM trips t JOIN zones z ON z.zone = t.zone GROUP BY z.name;
-- zones without trips too
SELECT z.name, COUNT(t.rider_id) AS n FROM zones z LEFT JOIN trips t ON t.zone = z.zone GROUP BY z.name;
-- trips by stops
SELECT stops, COUNT(*) AS n FROM trips GROUP BY stops;
-- trips by stops in pairs
SELECT stops // 2 AS pairs, COUNT(*) AS n FROM trips GROUP BY 1;
-- at least five stops
SELECT COUNT(*) AS n FROM trips WHERE stops >= 5;
-- trips per rider [AVG(n)]
SELECT mode, AVG(n) AS mean FROM (SELECT rider_id, mode, COUNT(*) AS n FROM trips GROUP BY rider_id, mode) AS r
GROUP BY mode;
-- trips per rider, middle one (within 1)
SELECT MEDIAN(n) AS middle FROM (SELECT rider_id, COUNT(*) AS n FROM trips GROUP BY rider_id) AS r;
-- the first trip of each rider by mode
SELECT mode, COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at) AS k
  FROM trips) AS t WHERE k = 1 GROUP BY mode;
-- riders who used two modes
SELECT COUNT(*) AS n FROM (SELECT rider_id FROM trips GROUP BY rider_id HAVING COUNT(DISTINCT mode) >= 2) AS r;
-- month of a rider's first trip
SELECT DATE_TRUNC('month', first) AS month, COUNT(*) AS riders
FROM (SELECT rider_id, MIN(started_at) AS first FROM trips GROUP BY rider_id) AS f GROUP BY 1;
-- weekday of a rider's last trip
SELECT DAYNAME(last) AS weekday, COUNT(*) AS riders
FROM (SELECT rider_id, MAX(started_at) AS last FROM trips GROUP BY rider_id) AS f GROUP BY 1;
-- longest trip in bands of 5 km
SELECT FLOOR(longest / 5) * 5 AS band, COUNT(*) AS riders
FROM (SELECT rider_id, MAX(km) AS longest FROM trips GROUP BY rider_id) AS f GROUP BY 1;
-- gaps between trips
SELECT COUNT(*) AS n FROM (SELECT started_at, LAG(ended_at) OVER (PARTITION BY rider_id ORDER BY started_at) AS before
  FROM trips) AS t WHERE DATE_DIFF('hour', before, started_at) < 24;
-- mean of gaps, bounded by WHERE
SELECT AVG(gap) AS mean FROM (
  SELECT km - LAG(km) OVER (PARTITION BY rider_id ORDER BY started_at) AS gap FROM trips) AS t WHERE gap > -100;
-- distance from a point
SELECT AVG(SQRT((lat - 48.5) * (lat - 48.5) + (lon - 2.5) * (lon - 2.5))) AS far FROM trips;
-- distance from a point with POWER
SELECT AVG(SQRT(POWER(lat - 48.5, 2) + POWER(lon - 2.5, 2))) AS far FROM trips;
-- km and fare
SELECT CORR(km, fare) AS r FROM trips;
-- quantiles of km (within 0.5)
SELECT QUANTILE_CONT(km, 0.25) AS q1, QUANTILE_CONT(km, 0.75) AS q3 FROM trips;
-- the mode of travel most used [MODE]
SELECT MODE(mode) AS m FROM trips;

-- trips by mode and hour of day
SELECT mode, EXTRACT(hour FROM started_at)::INT AS hour, COUNT(*) AS n FROM trips GROUP BY 1, 2;

-- average speed in km/h by mode
SELECT mode, SUM(km) / (SUM(DATE_DIFF('minute', started_at, ended_at)) / 60.0) AS speed
FROM trips
GROUP BY mode;

-- minutes per trip, mean
SELECT AVG(EXTRACT(EPOCH FROM (ended_at - started_at)) / 60) AS minutes FROM trips;

-- a grid of a tenth of a degree
SELECT ROUND(lat, 1) AS y, ROUND(lon, 1) AS x, COUNT(*) AS n FROM trips GROUP BY y, x;

-- trips within two kilometres of the centre
SELECT COUNT(*) AS n FROM trips WHERE SQRT(POWER((lat - 48.5) * 111, 2) + POWER((lon - 2.5) * 73, 2)) < 20;

-- fare per kilometre by zone name
SELECT z.name, SUM(t.fare) / SUM(t.km) AS per_km FROM trips t LEFT JOIN zones z ON t.zone = z.zone
GROUP BY z.name;

-- riders who used every mode
SELECT COUNT(*) AS riders FROM (SELECT rider_id FROM trips GROUP BY rider_id HAVING COUNT(DISTINCT mode) = 3);

-- most used mode per rider, how often
SELECT mode, COUNT(*) AS riders FROM (SELECT rider_id, mode, ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at DESC) AS k FROM trips)
WHERE k = 1
GROUP BY mode;

-- trips by weekday, Monday first
SELECT ISODOW(started_at) AS d, COUNT(*) AS n FROM trips GROUP BY d ORDER BY d;

-- histogram of distances in bins of five kilometres
SELECT WIDTH_BUCKET(km, 0, 30, 6) AS bin, COUNT(*) AS n FROM trips GROUP BY bin
-- means
SELECT CASE WHEN km >= 30 THEN 7 ELSE CAST(FLOOR(km / 5) AS INTEGER) + 1 END AS bin, COUNT(*) AS n FROM trips GROUP BY bin;

-- monthly active riders
SELECT DATE_TRUNC('month', started_at) AS month, COUNT(DISTINCT rider_id) AS riders
FROM trips
GROUP BY month
ORDER BY month;

-- seven-day moving average of trips in June 2023
WITH d AS (SELECT CAST(started_at AS DATE) AS day, COUNT(*) AS n FROM trips WHERE started_at >= '2023-06-01' AND started_at < '2023-07-01' GROUP BY 1) SELECT day, AVG(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth
FROM d
-- means
WITH d AS (SELECT CAST(g AS DATE) AS day, (SELECT COUNT(*) FROM trips WHERE CAST(started_at AS DATE) = CAST(g AS DATE)) AS n FROM range(TIMESTAMP '2023-06-01', TIMESTAMP '2023-07-01', INTERVAL 1 DAY) t(g)) SELECT day, AVG(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth FROM d;

-- trips that cross midnight
SELECT COUNT(*) AS n FROM trips WHERE started_at::DATE <> ended_at::DATE;

-- long trips by zone
SELECT zone, COUNT_IF(km > 15) AS n FROM trips GROUP BY zone;

-- geometric mean of fares
SELECT EXP(AVG(LN(fare))) AS fare FROM trips WHERE fare >= 1;

-- slope of fare on distance (within .002)
SELECT REGR_SLOPE(fare, km) AS slope, REGR_INTERCEPT(fare, km) AS base FROM trips;

-- riders with a gap of over two hundred days
SELECT COUNT(DISTINCT rider_id) AS riders FROM (SELECT rider_id, DATE_DIFF('day', LAG(started_at) OVER (PARTITION BY rider_id ORDER BY started_at), started_at) AS gap FROM trips)
WHERE gap > 200;

-- trips by quarter of an hour at the rush
SELECT TIME_BUCKET(INTERVAL '15 minutes', started_at) AS t, COUNT(*) AS n
FROM trips
WHERE started_at >= '2023-03-06 07:00' AND started_at < '2023-03-06 10:00'
GROUP BY t;

-- days in New York, of times written in UTC
SELECT (started_at AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')::DATE AS day, COUNT(*) AS n
FROM trips
WHERE started_at >= '2023-01-02' AND started_at < '2023-02-01'
GROUP BY day;

-- variance of stops on weekdays
SELECT VAR_SAMP(stops) AS v FROM trips WHERE EXTRACT(DOW FROM started_at) BETWEEN 1 AND 5;
-- trips that count by their stops, as in a survey
SELECT mode, WEIGHTED_COUNT(stops) AS n, WEIGHTED_SUM(km, stops) AS far, WEIGHTED_AVG(km, stops) AS mean
FROM trips GROUP BY mode
-- means SELECT mode, SUM(stops) AS n, SUM(km * stops) AS far, SUM(km * stops) / SUM(stops) AS mean FROM trips GROUP BY mode;
-- the weighted mean fare of short trips
SELECT WEIGHTED_AVG(fare, stops) FILTER (WHERE km < 10) AS mean FROM trips
-- means SELECT SUM(fare * stops) FILTER (WHERE km < 10) / SUM(stops) FILTER (WHERE km < 10) FROM trips;
