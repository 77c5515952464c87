"""Rows with the columns of two public data sets, generated from a seed, without a download.

Each value depends only on the seed, the column and the row's number, so the rows are the same in any partitioning.
"""

from pyspark.sql import functions as F

# New York's yellow taxis, as prepared for RAPIDS' example: the label is fare_amount.
TAXI = [
    "vendor_id", "passenger_count", "trip_distance", "pickup_longitude", "pickup_latitude", "rate_code",
    "store_and_fwd", "dropoff_longitude", "dropoff_latitude", "hour", "year", "month", "day", "day_of_week",
    "is_weekend", "h_distance",
]

# Fannie Mae's loans, likewise: the label is delinquency_12.
MORTGAGE = [
    "orig_channel", "first_home_buyer", "loan_purpose", "property_type", "occupancy_status", "property_state",
    "product_type", "relocation_mortgage_indicator", "seller_name", "mod_flag", "orig_interest_rate", "orig_upb",
    "orig_loan_term", "orig_ltv", "orig_cltv", "num_borrowers", "dti", "borrower_credit_score", "num_units", "zip",
    "mortgage_insurance_percent", "current_loan_delinquency_status", "current_actual_upb", "interest_rate", "loan_age",
    "msa", "non_interest_bearing_upb",
]


class _Draw:
    """Generates columns for the rows of a seed."""

    def __init__(self, seed):
        self.seed = seed

    def uniform(self, name, low=0.0, high=1.0):
        bits = F.shiftrightunsigned(F.xxhash64(F.lit(self.seed), F.lit(name), F.col("id")), 11)
        return F.lit(low) + bits / F.lit(float(2**53)) * F.lit(high - low)

    def whole(self, name, low, high):
        return F.floor(self.uniform(name, low, high + 1)).cast("double")

    def normal(self, name, mean=0.0, deviation=1.0):
        radius = F.sqrt(-2.0 * F.log(1.0 - self.uniform(name + "/radius")))
        return F.lit(mean) + F.lit(deviation) * radius * F.cos(self.uniform(name + "/angle", 0.0, 6.283185307179586))


def taxi(spark, rows, seed, partitions):
    """Returns rides: the fare grows with distance and traffic, and airports have their own fares."""
    draw = _Draw(seed)
    frame = spark.range(rows, numPartitions=partitions)
    frame = frame.select("id", *[column.alias(name) for name, column in {
        "vendor_id": draw.whole("vendor_id", 1, 2),
        "passenger_count": draw.whole("passenger_count", 1, 6),
        "pickup_longitude": draw.normal("pickup_longitude", -73.97, 0.04),
        "pickup_latitude": draw.normal("pickup_latitude", 40.75, 0.03),
        "rate_code": F.when(draw.uniform("rate_code") < 0.05, 2.0).otherwise(1.0),
        "store_and_fwd": (draw.uniform("store_and_fwd") < 0.01).cast("double"),
        "dropoff_longitude": draw.normal("dropoff_longitude", -73.97, 0.04),
        "dropoff_latitude": draw.normal("dropoff_latitude", 40.75, 0.03),
        "hour": draw.whole("hour", 0, 23),
        "year": draw.whole("year", 2014, 2016),
        "month": draw.whole("month", 1, 12),
        "day": draw.whole("day", 1, 28),
        "day_of_week": draw.whole("day_of_week", 0, 6),
        "detour": draw.uniform("detour", 1.1, 1.6),
        "noise": draw.normal("noise"),
    }.items()])
    east = (F.col("dropoff_longitude") - F.col("pickup_longitude")) * 52.3  # miles per degree at this latitude
    north = (F.col("dropoff_latitude") - F.col("pickup_latitude")) * 69.0
    frame = frame.withColumn("h_distance", F.sqrt(east * east + north * north))
    frame = frame.withColumn("trip_distance", F.col("h_distance") * F.col("detour"))
    frame = frame.withColumn("is_weekend", (F.col("day_of_week") >= 5).cast("double"))
    rush = (F.col("is_weekend") == 0) & F.col("hour").between(16, 19)
    night = F.when(F.col("hour") >= 20, 0.5).otherwise(0.0)
    metered = 2.5 + F.col("trip_distance") * F.when(rush, 3.4).otherwise(2.6) + night
    fare = F.when(F.col("rate_code") == 2, 52.0).otherwise(metered) + F.col("noise")
    return frame.select(*TAXI, F.greatest(fare, F.lit(2.5)).alias("fare_amount"))


def mortgage(spark, rows, seed, partitions):
    """Returns loans: those with little income, a bad score or a late payment tend to be late within a year."""
    draw = _Draw(seed)
    frame = spark.range(rows, numPartitions=partitions)
    frame = frame.select("id", *[column.alias(name) for name, column in {
        "orig_channel": draw.whole("orig_channel", 0, 2),
        "first_home_buyer": draw.whole("first_home_buyer", 0, 1),
        "loan_purpose": draw.whole("loan_purpose", 0, 3),
        "property_type": draw.whole("property_type", 0, 4),
        "occupancy_status": draw.whole("occupancy_status", 0, 2),
        "property_state": draw.whole("property_state", 0, 53),
        "product_type": F.lit(0.0),
        "relocation_mortgage_indicator": (draw.uniform("relocation_mortgage_indicator") < 0.01).cast("double"),
        "seller_name": draw.whole("seller_name", 0, 99),
        "mod_flag": (draw.uniform("mod_flag") < 0.02).cast("double"),
        "orig_interest_rate": draw.normal("orig_interest_rate", 5.0, 1.0),
        "orig_upb": F.round(F.exp(draw.normal("orig_upb", 12.1, 0.5)), -3),
        "orig_loan_term": F.when(draw.uniform("orig_loan_term") < 0.25, 180.0).otherwise(360.0),
        "orig_ltv": draw.uniform("orig_ltv", 40.0, 97.0),
        "num_borrowers": draw.whole("num_borrowers", 1, 2),
        "dti": draw.uniform("dti", 10.0, 60.0),
        "borrower_credit_score": draw.normal("borrower_credit_score", 735.0, 50.0),
        "num_units": draw.whole("num_units", 1, 4),
        "zip": draw.whole("zip", 0, 999),
        "current_loan_delinquency_status": (draw.uniform("current_loan_delinquency_status") < 0.08).cast("double"),
        "loan_age": draw.whole("loan_age", 0, 180),
        "msa": draw.whole("msa", 0, 400),
        "second_loan": F.greatest(draw.uniform("second_loan", -60.0, 20.0), F.lit(0.0)),
        "noise": draw.normal("noise"),
    }.items()])
    frame = frame.withColumn("orig_cltv", F.col("orig_ltv") + F.col("second_loan"))
    insured = F.when(F.col("orig_ltv") > 80, F.floor((F.col("orig_ltv") - 75) / 5) * 6.0)
    frame = frame.withColumn("mortgage_insurance_percent", insured.otherwise(0.0))
    repaid = F.least(F.col("loan_age") / F.col("orig_loan_term"), F.lit(0.95))
    frame = frame.withColumn("current_actual_upb", F.col("orig_upb") * (1 - repaid))
    frame = frame.withColumn("interest_rate", F.col("orig_interest_rate") - F.col("mod_flag"))
    frame = frame.withColumn("non_interest_bearing_upb", F.col("mod_flag") * F.col("orig_upb") * 0.1)
    risk = (
        (F.col("dti") - 35) / 12 - (F.col("borrower_credit_score") - 735) / 40 + (F.col("orig_cltv") - 70) / 20
        + 3 * F.col("current_loan_delinquency_status") - (F.col("num_borrowers") - 1) + F.col("noise")
    )
    return frame.select(*MORTGAGE, (risk > 2.0).cast("double").alias("delinquency_12"))
