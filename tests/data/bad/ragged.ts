@problemName x
@timeStamps false
@missing false
@univariate true
@equalLength false
@classLabel true a b
@data
1,2,3:a
1,2:b
