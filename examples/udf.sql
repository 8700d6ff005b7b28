-- ./run eddyline run examples/udf.sql --udf examples/my_functions.py
CREATE STREAM readings (ts TIMESTAMP, sensor BIGINT, celsius DOUBLE) USING generate
    OPTIONS (rows 1000, rate 100, sensor.domain '1..5', celsius.domain '10..40')
    TIMESTAMP BY ts;
CREATE SINK hot USING print OPTIONS (limit 5);

INSERT INTO hot
SELECT sensor, round(fahrenheit(celsius), 1) AS degrees FROM readings WHERE fahrenheit(celsius) > 100;
