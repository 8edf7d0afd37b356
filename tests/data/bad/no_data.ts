@problemName x
@classLabel true a b
1,2,3:a
